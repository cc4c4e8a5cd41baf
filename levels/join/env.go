package join

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/join/ports"
)

// Variables that FromEnv reads.
const (
	envRendezvous   = env.Rendezvous
	envRendezvousFD = env.RendezvousFD
	envSecret       = env.Secret
	envNode         = env.Node
	envNUMA         = env.NUMA
	envSite         = env.Site
	envInterfaces   = env.Interfaces
	envAdvertise    = env.Advertise
	envTimeout      = env.JoinTimeout
	envTLS          = env.TLS
)

// FromEnv reads the job's variables with getenv, usually [os.Getenv]: those of whoever
// started this process, as package launcher finds out, else a job of one rank.
// TIERFLOW_LAUNCHER names the launcher to believe. TIERFLOW_SECRET, _NODE, _NUMA,
// _SITE, _INTERFACES, _PORTS, _ADVERTISE, _JOIN_TIMEOUT and _TLS serve all, and TIERFLOW_RENDEZVOUS replaces the
// address told by a launcher. _NODE and _NUMA name a node and a NUMA domain for
// this rank in place of the real ones: with them one host plays several. _SITE names
// the site of the node; nothing else tells it. The error has one line for each
// missing or malformed variable.
//
// It opens no connection, except to a PMI-1 launcher with PMI_PORT: rank and
// size have to be asked for. On rank 0 Listener duplicates the inherited descriptor
// of TIERFLOW_RENDEZVOUS_FD, and this one stays open: a later FromEnv and Join in the same
// process find it again.
func FromEnv(getenv func(string) string) (Config, error) {
	l, err := launcher.Find(getenv)
	e := environment{launcher.NewVars(getenv)}
	c := Config{
		Origin: l.Origin, Rank: l.Rank, Size: l.Size, Share: l.Share, Leave: l.Leave,
		Secret:     getenv(envSecret),
		TLS:        getenv(envTLS),
		Node:       getenv(envNode),
		NUMA:       getenv(envNUMA),
		Site:       getenv(envSite),
		Interfaces: e.List(envInterfaces),
		Ports:      getenv(env.Ports),
		Advertise:  e.Addresses(envAdvertise),
		Rendezvous: e.List(envRendezvous),
		Timeout:    e.timeout(),
	}
	if err != nil {
		e.Add("%w", err)
	}
	if len(c.Rendezvous) == 0 {
		c.Rendezvous = l.Rendezvous
	}
	if l.Place != nil {
		e.ask(&c, l.Place)
	}
	if l.Name == launcher.Tierflow {
		c.Listener, c.Blame = e.listener(c.Rank), launcher.Blamer(e.Vars)
		c.Lobby = launcher.OpenLobby(e.Vars)
		if len(c.Rendezvous) == 0 && c.Size != 1 { // unknown: all missing variables are told at once
			e.Add("%s is missing: host:port of rank 0, alternatives separated by commas", envRendezvous)
		}
	}
	if l.Name != "" {
		e.checkRest(&c, l.Advice)
	}
	if err := e.Err(); err != nil {
		if c.Listener != nil {
			c.Listener.Close()
		}
		return Config{}, err
	}
	return c, nil
}

// environment reads variables and collects complaints.
type environment struct{ *launcher.Vars }

// ask asks the launcher for rank and size.
func (e environment) ask(c *Config, place func(context.Context) (levels.Rank, int, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var err error
	if c.Rank, c.Size, err = place(ctx); err != nil {
		e.Add("%w", err)
	}
}

// askTime bounds the question to the launcher on this host, as that one knows the answer.
const askTime = 10 * time.Second

// Bounds of TIERFLOW_JOIN_TIMEOUT.
const (
	minTimeout = time.Second
	maxTimeout = 24 * time.Hour
)

// timeout reads TIERFLOW_JOIN_TIMEOUT; 0: it isn't there.
func (e environment) timeout() time.Duration {
	text := e.Get(envTimeout)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < minTimeout || d > maxTimeout {
		e.Add("%s=%q; allowed are 1s to 24h, such as 90s or 5m", envTimeout, text)
		return 0
	}
	return d
}

// listener opens a duplicate of the inherited rendezvous socket, if there is one.
func (e environment) listener(rank levels.Rank) net.Listener {
	text := e.Get(envRendezvousFD)
	if text == "" {
		return nil
	}
	fd, ok := e.Number(envRendezvousFD, 3, 1<<20)
	switch {
	case !ok:
		return nil
	case rank != 0:
		e.Add("%s=%q on rank %d; only rank 0 has one", envRendezvousFD, text, rank)
		return nil
	}
	l, err := inherit(fd)
	if err != nil {
		e.Add("%s=%q: not a listening socket: %w", envRendezvousFD, text, err)
	}
	return l
}

// checkRest complains about the variables of all launchers. advice says how to
// give a secret.
func (e environment) checkRest(c *Config, advice string) {
	complain := func(variable string, err error) {
		if err != nil {
			e.Add("%s: %w", variable, err)
		}
	}
	_, err := parseFilters(c.Interfaces)
	complain(envInterfaces, err)
	_, err = ports.Parse(c.Ports)
	complain(env.Ports, err)
	if len(c.Advertise) > maxAdvertised {
		e.Add("%s has %d addresses; allowed are %d", envAdvertise, len(c.Advertise), maxAdvertised)
	}
	complain(envNUMA, checkDomain("NUMA domain", c.NUMA))
	complain(envSite, checkDomain("site", c.Site))
	complain(envTLS, c.checkTLS())
	if c.Size == 1 {
		return
	}
	for _, a := range c.Rendezvous {
		complain(envRendezvous, checkHostPort(a))
	}
	if c.Secret == "" && c.Share == nil {
		e.Add("%s is missing: %s", envSecret, cmp.Or(advice, "the job's secret, or the word "+NoSecret+" to go without"))
	}
}
