package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// PMI-1, the simple wire protocol of MPICH's process managers ("PMI: A Scalable
// Parallel Process-Management Interface for Extreme-Scale Systems", Balaji et al.,
// EuroMPI 2010, describes the interface). One line of key=value words is a request,
// and one its answer. Words come in any order.
//
//	[PMI_PORT] > cmd=initack pmiid=1
//	           < cmd=initack, cmd=set size=2, cmd=set rank=1, cmd=set debug=0   four lines
//	> cmd=init pmi_version=1 pmi_subversion=1  < cmd=response_to_init rc=0 …
//	> cmd=get_maxes                            < cmd=maxes vallen_max=1024 …
//	> cmd=get_my_kvsname                       < cmd=my_kvsname kvsname=K
//	> cmd=put kvsname=K key=tierflow-0 value=… < cmd=put_result rc=0           rank 0
//	> cmd=barrier_in                           < cmd=barrier_out
//	> cmd=get kvsname=K key=tierflow-0         < cmd=get_result rc=0 value=…
//	> cmd=finalize                             < cmd=finalize_ack

const (
	envPMIFD   = "PMI_FD"
	envPMIPort = "PMI_PORT"
	envPMIID   = "PMI_ID"

	pmiLine = 16 << 10 // longest answer, in bytes
)

func hasPMI(v *Vars) bool { return v.Any(envPMIFD, envPMIPort) }

func readPMI(v *Vars, l *Launcher) {
	if v.Any(envPMIFD) || !v.Any(envPMIPort) {
		readPMIFD(v, l)
	} else {
		readPMIPort(v, l)
	}
}

func readPMIFD(v *Vars, l *Launcher) {
	l.Origin = "PMI_RANK and PMI_SIZE, with " + envPMIFD
	fd, ok := v.Number(envPMIFD, 0, 1<<20)
	l.Rank, l.Size = v.place("PMI_RANK", "PMI_SIZE")
	if !ok || l.Size <= 1 {
		return
	}
	rank, size := l.Rank, l.Size
	s := sessionFor(fmt.Sprintf("%s=%d", envPMIFD, fd), &session{
		label: "PMI",
		dial:  func(context.Context) (net.Conn, error) { return openInherited(fd) },
		speak: func(c net.Conn) manager { return newPMI1(c, "", rank, size) },
	})
	l.Share, l.Leave = s.share, s.leave
}

// readPMIPort leaves rank and size to Place.
func readPMIPort(v *Vars, l *Launcher) {
	l.Origin = envPMIPort + " and " + envPMIID
	id, ok := v.Number(envPMIID, 0, levels.MaxRanks-1)
	at := v.Get(envPMIPort)
	if _, _, err := net.SplitHostPort(at); err != nil {
		v.Add("%s=%q; allowed is host:port", envPMIPort, at)
		ok = false
	}
	if !ok {
		return
	}
	s := sessionFor(fmt.Sprintf("%s=%s %s=%d", envPMIPort, at, envPMIID, id), &session{
		label: "PMI",
		dial:  func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", at) },
		speak: func(c net.Conn) manager { return newPMI1(c, strconv.Itoa(id), 0, 0) },
	})
	l.Place = func(ctx context.Context) (levels.Rank, int, error) {
		if err := s.during(ctx, func() error { return nil }); err != nil {
			return 0, 0, err
		}
		m := s.manager.(*pmi1)
		return m.rank, m.size, nil
	}
	l.Share, l.Leave = s.share, s.leave
}

// openInherited opens a duplicate of a descriptor left open by the launcher. Children
// of the program are no ranks: they get neither.
func openInherited(fd int) (net.Conn, error) {
	f, err := duplicate(fd, envPMIFD)
	if err != nil {
		return nil, fmt.Errorf("%s=%d is not an open descriptor: %w; a child of a rank is no rank, %s=%s runs it alone",
			envPMIFD, fd, err, envLauncher, None)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("%s=%d is not a socket: %w", envPMIFD, fd, err)
	}
	return c, nil
}

// pmi1 is a manager by PMI-1.
type pmi1 struct {
	conn io.ReadWriter
	in   *bufio.Reader
	id   string // the name of this process on a connection by PMI_PORT; empty: PMI_FD

	rank levels.Rank
	size int

	space    string // name of the job's key-value space
	maxValue int    // bytes
}

var _ manager = (*pmi1)(nil)

func newPMI1(c io.ReadWriter, id string, rank levels.Rank, size int) *pmi1 {
	return &pmi1{conn: c, in: bufio.NewReaderSize(c, pmiLine), id: id, rank: rank, size: size}
}

func (p *pmi1) greet() error {
	if p.id != "" {
		if err := p.acknowledge(); err != nil {
			return err
		}
	}
	if _, err := p.ask("init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return err
	}
	maxes, err := p.ask("get_maxes", "maxes")
	if err != nil {
		return err
	}
	if p.maxValue, err = maxes.number("vallen_max", 1, 1<<30); err != nil {
		return err
	}
	name, err := p.ask("get_my_kvsname", "my_kvsname")
	if err != nil {
		return err
	}
	if p.space = name.words["kvsname"]; p.space == "" {
		return name.bad("no kvsname")
	}
	return nil
}

// acknowledge names this process, and receives rank and size.
func (p *pmi1) acknowledge() error {
	if _, err := p.ask("initack pmiid="+p.id, "initack"); err != nil {
		return err
	}
	p.rank, p.size = -1, 0
	for range 3 { // size, rank, debug
		a, err := p.hear("set")
		if err != nil {
			return err
		}
		if a.has("size") {
			if p.size, err = a.number("size", 1, levels.MaxRanks); err != nil {
				return err
			}
		}
		if a.has("rank") {
			r, err := a.number("rank", 0, levels.MaxRanks-1)
			if err != nil {
				return err
			}
			p.rank = levels.Rank(r)
		}
	}
	if p.rank < 0 || int(p.rank) >= p.size {
		return fmt.Errorf("the launcher tells rank %d of %d", p.rank, p.size)
	}
	return nil
}

func (p *pmi1) spread(key, text string) (string, error) {
	if p.rank == 0 {
		if len(text) > p.maxValue {
			return "", fmt.Errorf("the launcher keeps values of at most %d bytes, the invitation has %d", p.maxValue, len(text))
		}
		if _, err := p.ask(fmt.Sprintf("put kvsname=%s key=%s value=%s", p.space, key, text), "put_result"); err != nil {
			return "", err
		}
	}
	if _, err := p.ask("barrier_in", "barrier_out"); err != nil {
		return "", &waitError{"barrier", p.size, err}
	}
	a, err := p.ask(fmt.Sprintf("get kvsname=%s key=%s", p.space, key), "get_result")
	if err != nil {
		return "", err
	}
	if !a.has("value") {
		return "", a.bad("no value")
	}
	return a.words["value"], nil
}

func (p *pmi1) bye() error {
	_, err := p.ask("finalize", "finalize_ack")
	return err
}

// ask sends a request and reads its answer.
func (p *pmi1) ask(request, expected string) (answer, error) {
	if _, err := io.WriteString(p.conn, "cmd="+request+"\n"); err != nil {
		return answer{}, fmt.Errorf("%s: %w", verb(request), err)
	}
	a, err := p.hear(expected)
	if err != nil {
		err = fmt.Errorf("%s: %w", verb(request), err)
	}
	return a, err
}

// verb returns the request without its words.
func verb(request string) string {
	name, _, _ := strings.Cut(request, " ")
	return name
}

// hear reads one line.
func (p *pmi1) hear(expected string) (answer, error) {
	line, err := p.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return answer{}, fmt.Errorf("an answer of more than %d bytes", pmiLine)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return answer{}, fmt.Errorf("the launcher cut its answer short: %s", hideValue(string(line)))
	case errors.Is(err, io.EOF):
		return answer{}, fmt.Errorf("the launcher ended the conversation: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return answer{}, err
	}
	a, err := parseAnswer(string(line[:len(line)-1]))
	switch {
	case err != nil:
		return a, err
	case a.words["cmd"] != expected:
		return a, a.bad("want cmd=" + expected)
	case a.has("rc") && a.words["rc"] != "0":
		return a, a.bad("the launcher refuses")
	}
	return a, nil
}

// answer is a line of the launcher, parsed.
type answer struct {
	line  string
	words map[string]string
}

// parseAnswer reads key=value words between blanks. A word without = belongs to a
// message for people. A repeated key is an error.
func parseAnswer(line string) (answer, error) {
	a := answer{line, map[string]string{}}
	for _, word := range strings.Fields(line) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		if a.has(key) {
			return a, a.bad("a word comes twice")
		}
		a.words[key] = value
	}
	if !a.has("cmd") {
		return a, a.bad("no cmd=")
	}
	return a, nil
}

func (a answer) has(key string) bool {
	_, ok := a.words[key]
	return ok
}

func (a answer) number(key string, low, high int) (int, error) {
	n, err := strconv.Atoi(a.words[key])
	if err != nil || n < low || n > high {
		return 0, a.bad(fmt.Sprintf("want %s of %d to %d", key, low, high))
	}
	return n, nil
}

// bad returns an error about the line.
func (a answer) bad(why string) error { return fmt.Errorf("answer %s: %s", hideValue(a.line), why) }

// hideValue quotes a line without its value, as that may be a secret.
func hideValue(line string) string {
	if before, _, ok := strings.Cut(line, "value="); ok {
		line = before + "value=…"
	}
	return quoteStart(line)
}
