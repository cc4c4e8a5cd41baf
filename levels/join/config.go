package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/join/ports"
)

const (
	joinTime = 30 * time.Second // unless ctx or Config.Timeout says otherwise
	tellTime = time.Second      // on top of it at most, for rank 0 to tell the others
)

// NoSecret as a Config's Secret lets, explicitly, anyone who can reach the
// job join it.
const NoSecret = "none"

// Config tells a rank how to enter its job. [FromEnv] makes one.
type Config struct {
	Rank levels.Rank
	Size int // ranks in the job; 0 means 1

	// Rendezvous holds host:port alternatives of rank 0's rendezvous listener.
	Rendezvous []string
	// Listener is rank 0's rendezvous listener. Join closes it. nil: rank 0 listens
	// at the Rendezvous addresses itself.
	Listener net.Listener

	// Secret of the job, or [NoSecret]. Needed unless Size is 1 or there is Share.
	Secret string

	// TLS keeps the connections between hosts from others on the way, with TLS 1.3: "job" by
	// the job's secret, of at least 32 characters, and without certificates;
	// "cert=F,key=F,ca=F" by certificates on both sides, in files of PEM. They are read again
	// when they change. There ",id=GLOB" admits certificates by their URI and DNS
	// names; without it those with the first name of this rank's own, and id=* admits
	// all of the CA. All ranks have the same kind. Empty or "off": they are plain TCP.
	TLS string

	// Share gives every rank the text of rank 0: at most 1000 bytes without
	// blanks. All ranks call it once, in Join. With it Rendezvous and Secret may be
	// empty: rank 0 opens a listener, makes a secret and shares both. A rank keeps its own
	// address and secret. nil: nothing is shared.
	Share func(ctx context.Context, text string) (string, error)
	// Leave tells the launcher of this rank's good end. Close calls it, once,
	// after a job without failure. nil: nobody wants to know.
	Leave func(ctx context.Context) error
	// Blame tells the launcher of the first failure met by this rank: its own, or
	// another rank's; -1: no one's in particular. nil: nobody wants to know.
	Blame func(b launcher.Blame)
	// Lobby has the processes waiting to join while the job runs; this one may have to wait. nil: nobody
	// ever does. Join doesn't look at it.
	Lobby *launcher.Lobby
	// Timeout is how long ranks may take to come where Join's ctx has no deadline.
	// 0: 30 s.
	Timeout time.Duration

	// Node overrides the identity of this rank's node, to emulate
	// several nodes on one host. Empty: boot id, host name and network namespace.
	Node string
	// NUMA overrides the NUMA domain to which this rank is bound, to
	// emulate several. Empty: the one with all CPUs of the process's affinity.
	NUMA string
	// Site names the site of the node, one of several with slower links between
	// them than inside. Empty: unknown.
	Site string
	// Interfaces to use: names, name*, subnets; ! in front excludes. Peers try those of the first item
	// first, and so on. Empty: all, or loopback alone if that is where Rendezvous is: then all ranks are on one host.
	Interfaces []string
	// Advertise has the addresses that peers on other hosts are to dial this rank at, in the order to try
	// them: where addresses are translated on the way, or a container has others than its host. Empty: those of
	// Interfaces. It changes nothing if all ranks are on one host.
	Advertise []netip.Addr
	// Ports is the range of ports to listen at, FIRST-LAST: this rank takes one, and rank 0 another if it opens a
	// rendezvous with [Config.Share]. Empty: the system's choice.
	Ports string
	// Hello is the caller's, told to all ranks; at most [MaxHello] bytes.
	Hello []byte

	// Origin names the source of the configuration.
	Origin string
	// Log gets one line per source and minute of refused connections, and warnings: of an unknown NUMA
	// domain, a weak secret, a private key open to others. nil: slog.Default().
	Log *slog.Logger

	opened  []net.Listener // rank 0's, for the ranks it has invited
	targets []target       // rank 0's, in the order to try; empty: those of Rendezvous
	open    bool           // rank 0 listened at Rendezvous when it invited this rank
}

// String is one line without the secret.
func (c Config) String() string {
	secret := "secret set"
	switch c.Secret {
	case "":
		secret = "no secret"
	case NoSecret:
		secret = "secret none"
	}
	line := fmt.Sprintf("rank %d of %d", c.Rank, max(c.Size, 1))
	if c.Origin != "" {
		line += " from " + c.Origin
	}
	switch {
	case len(c.Rendezvous) > 0:
		line += ", rendezvous " + strings.Join(c.Rendezvous, ",") + ", " + secret
	case c.Share != nil:
		line += ", rendezvous shared by the launcher"
	}
	for _, set := range [][2]string{
		{"TLS", c.TLS},
		{"node", c.Node},
		{"NUMA domain", c.NUMA},
		{"site", c.Site},
		{"interfaces", strings.Join(c.Interfaces, ",")},
		{"ports", c.Ports},
		{"offered as", joined(c.Advertise)},
	} {
		if set[1] != "" {
			line += ", " + set[0] + " " + set[1]
		}
	}
	return line
}

func joined(all []netip.Addr) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ",")
}

// GoString keeps the secret out of %#v too.
func (c Config) GoString() string { return "join.Config{" + c.String() + "}" }

// check lists everything wrong with a Config.
func (c *Config) check() error {
	var errs []error // some are nil
	if c.Size < 1 || c.Size > levels.MaxRanks {
		errs = append(errs, fmt.Errorf("size %d; allowed are 1 to %d", c.Size, levels.MaxRanks))
	}
	if c.Rank < 0 || int(c.Rank) >= c.Size {
		errs = append(errs, fmt.Errorf("rank %d; allowed are 0 to %d", c.Rank, c.Size-1))
	}
	_, err := parseFilters(c.Interfaces)
	_, err2 := ports.Parse(c.Ports)
	errs = append(errs, err, err2)
	if len(c.Advertise) > maxAdvertised {
		errs = append(errs, fmt.Errorf("%d addresses to be dialled at; allowed are %d", len(c.Advertise), maxAdvertised))
	}
	for _, a := range c.Advertise {
		if !launcher.IsAddressable(a) {
			errs = append(errs, fmt.Errorf("address %s to be dialled at; allowed are those that other hosts may dial", a))
		}
	}
	if len(c.Hello) > MaxHello {
		errs = append(errs, fmt.Errorf("hello of %d bytes; allowed are %d", len(c.Hello), MaxHello))
	}
	if len(c.Node) > 255 {
		errs = append(errs, fmt.Errorf("node name of %d bytes; allowed are 255", len(c.Node)))
	}
	errs = append(errs, checkDomain("NUMA domain", c.NUMA), checkDomain("site", c.Site), c.checkTLS())
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v; allowed are positive ones, and 0 for %v", c.Timeout, joinTime))
	}
	if c.Size == 1 {
		return errors.Join(errs...)
	}
	for _, a := range c.Rendezvous {
		if err := checkHostPort(a); err != nil {
			errs = append(errs, fmt.Errorf("rendezvous: %w", err))
		}
	}
	if c.Share != nil {
		return errors.Join(errs...)
	}
	if c.Secret == "" {
		errs = append(errs, fmt.Errorf("no secret; allowed are the job's, or %q to go without", NoSecret))
	}
	if len(c.Rendezvous) == 0 && (c.Rank != 0 || c.Listener == nil) {
		errs = append(errs, errors.New("no rendezvous address; each rank needs rank 0's host:port"))
	}
	return errors.Join(errs...)
}

// Values of Config.TLS.
const (
	tlsOff = "off"
	tlsJob = "job"
)

// minSecret is the length of the shortest secret for TLS: an attacker on the way gets
// a proof from a dialer, and may guess secrets with it at leisure.
const minSecret = 32

// checkTLS returns the fault of the Config's TLS, as far as it can be known before the
// launcher has shared a secret.
func (c *Config) checkTLS() error {
	switch {
	case c.TLS == "" || c.TLS == tlsOff:
		return nil
	case c.hasCertificates():
		files, err := parseCertificates(c.TLS)
		if err == nil && c.Size > 1 {
			_, err = files.load()
		}
		return err
	case c.TLS != tlsJob:
		return fmt.Errorf("TLS %q; allowed are off, job and cert=FILE,key=FILE,ca=FILE[,id=GLOB]", c.TLS)
	case c.Size > 1 && (c.Secret != "" || c.Share == nil):
		return checkSecret(c.Secret)
	}
	return nil
}

// hasCertificates reports whether TLS names files. Items may come in any order.
func (c *Config) hasCertificates() bool { return strings.Contains(c.TLS, "=") }

func checkSecret(secret string) error {
	switch {
	case secret == NoSecret:
		return fmt.Errorf("TLS by the job's secret with secret %q; allowed are secrets of at least %d characters", NoSecret, minSecret)
	case len(secret) < minSecret:
		return fmt.Errorf("TLS by the job's secret with a secret of %d characters; allowed are at least %d: a shorter one can be guessed", len(secret), minSecret)
	}
	return nil
}

// addresses returns this host's addresses that c's Interfaces admit, see [ownAddresses]. Without Interfaces
// one of loopback is all that a job on one host needs.
func (c *Config) addresses() (own []netip.Prefix, nics map[netip.Addr]string, err error) {
	filters, err := parseFilters(c.Interfaces)
	if err != nil {
		return nil, nil, err
	}
	own, nics, err = ownAddresses(filters)
	if err != nil || !c.isLocal() {
		return own, nics, err
	}
	for _, p := range own {
		if p.Addr().IsLoopback() {
			return []netip.Prefix{p}, nics, nil
		}
	}
	return own, nics, nil
}

// isLocal reports whether all ranks are on one host for sure, and nothing else was asked for: rank 0 is met on
// loopback.
func (c *Config) isLocal() bool {
	return len(c.Interfaces) == 0 && c.meetsOnLoopback()
}

// meetsOnLoopback reports whether nobody on another host can come to the rendezvous.
func (c *Config) meetsOnLoopback() bool {
	at := c.Rendezvous
	if len(at) == 0 && c.Listener != nil {
		at = []string{c.Listener.Addr().String()}
	}
	return len(at) > 0 && !slices.ContainsFunc(at, func(a string) bool {
		host, _, _ := net.SplitHostPort(a) // checked before
		ip, _ := netip.ParseAddr(host)
		return host != "localhost" && !ip.IsLoopback()
	})
}

// secretFault is the fault of a secret that others may try; empty: none.
func (c *Config) secretFault() string {
	switch {
	case c.TLS != "" && c.TLS != tlsOff, c.Size == 1, c.meetsOnLoopback():
		return ""
	case c.Secret == NoSecret:
		return "whoever reaches a port of the job can join it"
	case len(c.Secret) < weakSecret:
		return fmt.Sprintf("a secret of %d characters can be guessed", len(c.Secret))
	}
	return ""
}

// weakSecret is the length below which a secret is weak.
const weakSecret = 16

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.Default()
	}
	return c.Log
}

func checkHostPort(a string) error {
	host, port, err := net.SplitHostPort(a)
	n, convErr := strconv.Atoi(port)
	if err != nil || convErr != nil || host == "" || n < 1 || n > 65535 {
		return fmt.Errorf("%q; allowed is host:port, such as 10.0.0.1:4000 or [fd00::1]:4000", a)
	}
	return nil
}
