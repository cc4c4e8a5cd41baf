package join

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// invitation is rank 0's text for the others, shared through a launcher: its address, and a secret of its own.
// A rank's Config comes first.
//
// As text it is "tfi1." and its JSON in base64 without padding.
type invitation struct {
	At     []string `json:"at"`
	Secret string   `json:"secret,omitempty"`
	Host   *Host    `json:"host,omitempty"` // rank 0's; nil: it didn't fit
	Open   bool     `json:"open,omitempty"` // rank 0 listens there already
	Offer  Offer    `json:"how,omitempty"`  // how At came about
}

const (
	invitationPrefix = "tfi1."
	secretBytes      = 32
	maxInvited       = 8 // addresses
)

// text writes the invitation in at most limit bytes. It leaves out the host if need
// be, then addresses from the end.
func (i invitation) text(limit int) (string, error) {
	i.At = i.At[:min(len(i.At), maxInvited)]
	for {
		b, err := json.Marshal(i)
		if err != nil {
			return "", err
		}
		text := invitationPrefix + base64.RawURLEncoding.EncodeToString(b)
		switch {
		case len(text) <= limit:
			return text, nil
		case i.Host != nil:
			i.Host = nil
		case len(i.At) > 1:
			i.At = i.At[:len(i.At)-1]
		default:
			return "", fmt.Errorf("an invitation of %d bytes; the launcher carries %d", len(text), limit)
		}
	}
}

// parseInvitation reads an invitation's text. Errors don't tell the secret.
func parseInvitation(text string) (invitation, error) {
	var i invitation
	body, ok := strings.CutPrefix(text, invitationPrefix)
	if !ok {
		version, _, _ := strings.Cut(text, ".")
		return i, fmt.Errorf("%w: rank 0's invitation has version %.20q; this rank knows %q: all ranks must run the same tierflow",
			ErrVersion, version, strings.TrimSuffix(invitationPrefix, "."))
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(b, &i)
	}
	if err != nil {
		return invitation{}, fmt.Errorf("rank 0's invitation is damaged: %w", err)
	}
	if len(i.At) == 0 || len(i.At) > maxInvited {
		return invitation{}, fmt.Errorf("rank 0's invitation has %d addresses; allowed are 1 to %d", len(i.At), maxInvited)
	}
	for _, a := range i.At {
		if err := checkHostPort(a); err != nil {
			return invitation{}, fmt.Errorf("rank 0's invitation: %w", err)
		}
	}
	return i, nil
}

// invite shares an invitation through the launcher and completes cfg:
// rendezvous and secret.
func (c *Config) invite(ctx context.Context) error {
	if c.Share == nil || c.Size == 1 {
		return nil
	}
	mine := ""
	if c.Rank == 0 {
		i, err := c.invitation()
		if err == nil {
			mine, err = i.text(launcher.MaxText)
		}
		if err != nil {
			return err
		}
	}
	deadline, _ := ctx.Deadline()
	sharing, stop := context.WithDeadline(ctx, deadline.Add(-spareTime(deadline)))
	defer stop()
	text, err := c.Share(sharing, mine)
	if err != nil {
		return err
	}
	i, err := parseInvitation(text)
	if err != nil {
		return err
	}
	if c.Secret == "" && i.Secret == "" {
		return errors.New("rank 0 was given a secret and this rank was not: give it to all ranks (mpirun -x TIERFLOW_SECRET), or to none")
	}
	c.Secret = cmp.Or(c.Secret, i.Secret)
	if len(c.Rendezvous) == 0 {
		c.orderAddresses(i)
	}
	return nil
}

// orderAddresses takes rank 0's addresses in the order to try them: loopback is the first on
// its host, and out of question elsewhere.
func (c *Config) orderAddresses(i invitation) {
	c.Rendezvous, c.open = i.At, i.Open
	own, _, err := c.addresses()
	host, err2 := thisHost()
	if err != nil || err2 != nil || i.Host == nil {
		return // later steps complain
	}
	var offered []netip.AddrPort
	for _, a := range i.At {
		at, err := netip.ParseAddrPort(a)
		if err != nil {
			return // a name given to rank 0
		}
		offered = append(offered, at)
	}
	if targets, _ := candidates(own, len(c.Interfaces) > 0, host == *i.Host, i.Offer, offered, systemSource); len(targets) > 0 {
		c.targets = targets
	}
}

// invitation opens rank 0's rendezvous and makes a secret, unless they are given.
func (c *Config) invitation() (invitation, error) {
	host, err := thisHost()
	if err != nil {
		return invitation{}, err
	}
	i := invitation{At: c.Rendezvous, Host: &host}
	switch c.Secret {
	case "":
		secret := make([]byte, secretBytes)
		rand.Read(secret)
		c.Secret = base64.RawURLEncoding.EncodeToString(secret)
		i.Secret = c.Secret
	case NoSecret:
		i.Secret = NoSecret
	}
	if len(i.At) > 0 {
		i.Open = c.Listener != nil
		return i, nil
	}
	own, _, err := c.addresses()
	if err != nil {
		return i, err
	}
	listeners, offered, how, err := c.openListeners(own, len(c.Interfaces) > 0)
	if err != nil {
		return i, err
	}
	for _, a := range offered {
		i.At = append(i.At, a.String())
	}
	c.opened, i.Open, i.Offer = listeners, true, how
	return i, nil
}

// closeOpened closes the listeners of the invitation. The gate does so too.
func (c *Config) closeOpened() { closeListeners(c.opened) }
