package join

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/levels"
)

// Variables that FromEnv reads.
const (
	envRank         = "TIERFLOW_RANK"
	envSize         = "TIERFLOW_SIZE"
	envRendezvous   = "TIERFLOW_RENDEZVOUS"
	envRendezvousFD = "TIERFLOW_RENDEZVOUS_FD"
	envSecret       = "TIERFLOW_SECRET"
	envNode         = "TIERFLOW_NODE"
	envNUMA         = "TIERFLOW_NUMA"
	envSite         = "TIERFLOW_SITE"
	envInterfaces   = "TIERFLOW_INTERFACES"
)

// FromEnv reads the job's variables with getenv, usually [os.Getenv]: those of
// tierflow's launcher (TIERFLOW_RANK, _SIZE, _RENDEZVOUS, and _RENDEZVOUS_FD on rank
// 0), else those torchrun sets (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else a
// job of one rank. TIERFLOW_SECRET, _NODE, _NUMA, _SITE and _INTERFACES serve all,
// and TIERFLOW_RENDEZVOUS replaces MASTER_ADDR and MASTER_PORT. _NODE and _NUMA name
// a node and a NUMA domain for this rank in place of the real ones: with them one
// host plays several. _SITE names the site of the node; nothing else tells it. The
// error has one line for each variable that is missing or malformed.
//
// On rank 0 Listener duplicates the inherited descriptor, which stays open: a
// later FromEnv and Join in the same process find it again.
func FromEnv(getenv func(string) string) (Config, error) {
	e := environment{get: getenv}
	c := Config{
		Secret:     getenv(envSecret),
		Node:       getenv(envNode),
		NUMA:       getenv(envNUMA),
		Site:       getenv(envSite),
		Interfaces: split(getenv(envInterfaces)),
		Rendezvous: split(getenv(envRendezvous)),
	}
	switch {
	case e.any(envRank, envSize, envRendezvousFD):
		c.Origin = "TIERFLOW_ variables"
		c.Rank, c.Size = e.place(envRank, envSize)
		c.Listener = e.listener(c.Rank)
		if len(c.Rendezvous) == 0 && c.Size > 1 {
			e.add("%s is missing: host:port of rank 0, alternatives separated by commas", envRendezvous)
		}
	case e.any("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
		c.Origin = "RANK and WORLD_SIZE"
		c.Rank, c.Size = e.place("RANK", "WORLD_SIZE")
		if len(c.Rendezvous) == 0 && c.Size > 1 {
			c.Rendezvous = e.master()
		}
	default:
		c.Origin = "an environment without job variables"
		c.Size = 1
	}
	e.checkRest(&c)
	if len(e.errs) > 0 {
		if c.Listener != nil {
			c.Listener.Close()
		}
		return Config{}, errors.Join(e.errs...)
	}
	return c, nil
}

// environment collects complaints about variables.
type environment struct {
	get  func(string) string
	errs []error
}

func (e *environment) add(format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf(format, args...))
}

func (e *environment) any(names ...string) bool {
	for _, name := range names {
		if e.get(name) != "" {
			return true
		}
	}
	return false
}

// number reads a variable in low..high; ok is false after a complaint.
func (e *environment) number(name string, low, high int) (n int, ok bool) {
	text := e.get(name)
	if text == "" {
		e.add("%s is missing; allowed are %d to %d", name, low, high)
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		e.add("%s=%q; allowed are %d to %d", name, text, low, high)
		return 0, false
	}
	return n, true
}

func (e *environment) place(rank, size string) (levels.Rank, int) {
	n, ok := e.number(size, 1, levels.MaxRanks)
	last := n - 1
	if !ok {
		last = levels.MaxRanks - 1
	}
	r, _ := e.number(rank, 0, last)
	return levels.Rank(r), n
}

func (e *environment) master() []string {
	host := e.get("MASTER_ADDR")
	if host == "" {
		e.add("MASTER_ADDR is missing: the host of rank 0")
	}
	port, ok := e.number("MASTER_PORT", 1, 65535)
	if host == "" || !ok {
		return nil
	}
	return []string{net.JoinHostPort(host, strconv.Itoa(port))}
}

// listener opens a duplicate of the inherited rendezvous socket, if there is one.
func (e *environment) listener(rank levels.Rank) net.Listener {
	text := e.get(envRendezvousFD)
	if text == "" {
		return nil
	}
	fd, ok := e.number(envRendezvousFD, 3, 1<<20)
	switch {
	case !ok:
		return nil
	case rank != 0:
		e.add("%s=%q on rank %d; only rank 0 has one", envRendezvousFD, text, rank)
		return nil
	}
	l, err := inherit(fd)
	if err != nil {
		e.add("%s=%q: not a listening socket: %w", envRendezvousFD, text, err)
	}
	return l
}

func inherit(fd int) (net.Listener, error) {
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, err
	}
	if listening == 0 {
		return nil, errors.New("nobody called listen on it")
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd) // children of the program are no ranks
	f := os.NewFile(uintptr(dup), "rendezvous")
	defer f.Close()
	return net.FileListener(f)
}

// checkRest complains about what all ways have in common.
func (e *environment) checkRest(c *Config) {
	if _, err := parseFilters(c.Interfaces); err != nil {
		e.add("%s: %w", envInterfaces, err)
	}
	if err := checkDomain("NUMA domain", c.NUMA); err != nil {
		e.add("%s: %w", envNUMA, err)
	}
	if err := checkDomain("site", c.Site); err != nil {
		e.add("%s: %w", envSite, err)
	}
	if c.Size <= 1 {
		return
	}
	for _, a := range c.Rendezvous {
		if err := checkHostPort(a); err != nil {
			e.add("%s: %w", envRendezvous, err)
		}
	}
	if c.Secret == "" {
		e.add("%s is missing: the job's secret, or the word %s to go without", envSecret, NoSecret)
	}
}

func split(list string) []string {
	var items []string
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
