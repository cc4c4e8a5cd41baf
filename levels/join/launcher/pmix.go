package launcher

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// PMIx, the protocol between an application and its server in Open MPI's mpirun, PRRTE
// and Slurm (OpenPMIx, src/mca/ptl and src/server; the PMIx standard describes the
// interface only). This client says that it is of version 3.2.4 with bfrops v3 and
// gds hash, which all servers since serve:
//
//	> header, "native" uid gid, namespace rank, "3.2.4" "v3" "hash"   < status, index
//	> commit: the text, for ranks of this node and of others          < status      rank 0
//	> fence of all ranks, collecting the committed texts              < status
//	> get of rank 0's text                                            < status, values
//	> finalize                                                        < status
//
// Without the fence's collecting, a get of another node's rank answers in another
// format. Without finalize mpirun takes this rank's end for a crash.

const (
	envPMIXRank  = "PMIX_RANK"
	envPMIXSpace = "PMIX_NAMESPACE"
	envPMIXMode  = "PMIX_SECURITY_MODE"

	pmixVersion  = "3.2.4"
	pmixFirstTag = 100        // of requests; lower ones are reserved
	pmixEveryone = ^uint32(1) // the rank for all
	pmixNobody   = ^uint32(0) // index and tag of the handshake
	pmixHeader   = 4 * 4      // bytes
	pmixStray    = 1000       // messages without a request, at most
)

// Commands of a request.
const (
	pmixCommit   = 2
	pmixFence    = 3
	pmixGet      = 4
	pmixFinalize = 5
)

// pmixURIs are the variables with the server's address, best first.
var pmixURIs = []string{"PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41", "PMIX_SERVER_URI21"}

func hasPMIx(v *Vars) bool { return v.All(envPMIXRank, envPMIXSpace) && v.Any(pmixURIs...) }

// fromSlurm reports whether srun --mpi=pmix made the namespace.
func fromSlurm(v *Vars) bool { return strings.HasPrefix(v.Get(envPMIXSpace), "slurm.") }

// inner returns which of PMIx and PMI-1 started this process, if both have left
// variables; empty: nothing tells. mpirun sets OMPI_COMM_WORLD_SIZE. Slurm sets only
// one of both, so that another launcher inside its step has set PMI_FD.
func inner(v *Vars) string {
	switch {
	case v.Any("OMPI_COMM_WORLD_SIZE"):
		return PMIx
	case fromSlurm(v):
		return PMI
	}
	return ""
}

func readPMIx(v *Vars, l *Launcher) {
	l.Origin = envPMIXRank + " and " + envPMIXSpace
	if !v.All(envPMIXSpace) {
		v.Add("%s is missing: the name that PMIx gave the job", envPMIXSpace)
	}
	l.Rank, l.Size = readPMIxPlace(v)
	uri := v.first(pmixURIs...)
	if uri == "" {
		v.Add("%s is missing: the address of the PMIx server", pmixURIs[0])
		return
	}
	if l.Size <= 1 {
		return
	}
	network, at, err := parsePMIxURI(v.Get(uri))
	if err != nil {
		v.Add("%s=%w", uri, err)
		return
	}
	if mode := v.Get(envPMIXMode); mode != "" && !slices.Contains(v.List(envPMIXMode), "native") && !v.All(envRendezvous, envSecret) {
		v.Add("%s=%q: the PMIx server wants one of these, this rank can do native: use srun --mpi=pmi2, or give %s and %s",
			envPMIXMode, mode, envRendezvous, envSecret)
		return
	}
	space, rank, size := v.Get(envPMIXSpace), l.Rank, l.Size
	s := sessionFor(fmt.Sprintf("%s.%d at %s", space, rank, at), &session{
		label: "PMIx",
		dial:  func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, at) },
		speak: func(c net.Conn) manager { return newPMIx(c, space, rank, size) },
	})
	l.Share, l.Leave = s.share, s.leave
}

// readPMIxPlace reads the rank, and the size from whoever tells it. The variables of a
// Slurm step count only if Slurm is the PMIx server: others start their daemons in a
// step of their own.
func readPMIxPlace(v *Vars) (levels.Rank, int) {
	sizes := []string{"OMPI_COMM_WORLD_SIZE"}
	if fromSlurm(v) {
		sizes = append(sizes, "SLURM_STEP_NUM_TASKS")
	}
	size := v.first(append(sizes, envSize)...)
	if size == "" {
		v.Add("%s is missing: PMIx tells the rank, and this launcher tells no size", envSize)
		return 0, 0
	}
	return v.place(envPMIXRank, size)
}

// parsePMIxURI reads NAME.RANK;tcp4://HOST:PORT, whatever may follow behind another
// semicolon.
func parsePMIxURI(uri string) (network, at string, err error) {
	parts := strings.Split(uri, ";")
	if len(parts) >= 2 {
		for _, scheme := range []string{"tcp4", "tcp6"} {
			if address, ok := strings.CutPrefix(parts[1], scheme+"://"); ok {
				host, port, err := net.SplitHostPort(address)
				n, convErr := strconv.Atoi(port)
				if err == nil && convErr == nil && net.ParseIP(host) != nil && n > 0 && n < 1<<16 {
					return scheme, address, nil
				}
			}
		}
	}
	return "", "", fmt.Errorf("%s: want NAME.RANK;tcp4://ADDRESS:PORT or tcp6://[ADDRESS]:PORT", quoteStart(uri))
}

// pmix is a manager by PMIx.
type pmix struct {
	conn  io.ReadWriter
	space string
	rank  levels.Rank
	size  int

	index uint32 // this rank's number at the server
	tag   uint32 // of the next request
}

var _ manager = (*pmix)(nil)

func newPMIx(c io.ReadWriter, space string, rank levels.Rank, size int) *pmix {
	return &pmix{conn: c, space: space, rank: rank, size: size, tag: pmixFirstTag}
}

// greet is the handshake. Its header and numbers are in the order of this host, except
// what is packed.
func (p *pmix) greet() error {
	var m pack
	m.b = append(m.b, "native\x00"...)
	m.u32(8) // bytes of credentials: user and group
	m.b = binary.NativeEndian.AppendUint32(m.b, uint32(os.Geteuid()))
	m.b = binary.NativeEndian.AppendUint32(m.b, uint32(os.Getegid()))
	m.u8(0) // a simple client
	m.b = append(m.b, p.space+"\x00"...)
	m.u32(uint32(p.rank))
	m.b = append(m.b, pmixVersion+"\x00v3\x00"...)
	m.u8(1) // buffers are not described
	m.b = append(m.b, "hash\x00"...)
	header := make([]byte, 0, pmixHeader)
	for _, word := range []uint32{pmixNobody, pmixNobody, uint32(len(m.b)), 0} {
		header = binary.NativeEndian.AppendUint32(header, word)
	}
	if _, err := p.conn.Write(append(header, m.b...)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	var answer [8]byte
	if _, err := io.ReadFull(p.conn, answer[:4]); err != nil {
		return fmt.Errorf("handshake: %w", explainEnd(err))
	}
	if status := int32(binary.BigEndian.Uint32(answer[:])); status != 0 {
		return fmt.Errorf("handshake: status %d", status)
	}
	if _, err := io.ReadFull(p.conn, answer[4:]); err != nil {
		return fmt.Errorf("handshake: %w", explainEnd(err))
	}
	p.index = binary.BigEndian.Uint32(answer[4:])
	return nil
}

// explainEnd explains an end of the connection.
func explainEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the launcher ended the conversation: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func (p *pmix) spread(key, text string) (string, error) {
	if p.rank == 0 {
		if _, err := p.ask("commit", commitRequest(key, text)); err != nil {
			return "", err
		}
	}
	if _, err := p.ask("fence", fenceRequest(p.space)); err != nil {
		return "", &waitError{"fence", p.size, err}
	}
	values, err := p.ask("get of "+key, getRequest(p.space, key))
	if err != nil {
		return "", err
	}
	got, err := findText(values, key)
	if err != nil {
		return "", fmt.Errorf("get of %s: %w", key, err)
	}
	return got, nil
}

func (p *pmix) bye() error {
	var m pack
	m.count(1)
	m.u8(pmixFinalize)
	_, err := p.ask("finalize", m.b)
	return err
}

// commitRequest puts a text under key, for ranks of this node and for others.
func commitRequest(key, text string) []byte {
	var value, m pack
	value.count(1)
	value.text(key)
	value.u16(pmixString)
	value.text(text)
	m.count(1)
	m.u8(pmixCommit)
	for _, scope := range []uint8{1, 2} { // local, remote
		m.count(1)
		m.u8(scope)
		m.count(1)
		m.u8(1) // the buffer is not described
		m.size(len(value.b))
		m.b = append(m.b, value.b...)
	}
	return m.b
}

// fenceRequest waits for all ranks and collects their commits.
func fenceRequest(space string) []byte {
	var m pack
	m.count(1)
	m.u8(pmixFence)
	m.count(1)
	m.size(1) // of processes
	m.count(1)
	m.text(space)
	m.u32(pmixEveryone)
	m.count(1)
	m.size(1) // of directives
	m.count(1)
	m.text("pmix.collect")
	m.u32(0) // no flags
	m.u16(pmixBool)
	m.u8(1)
	return m.b
}

// getRequest asks for rank 0's value of key.
func getRequest(space, key string) []byte {
	var m pack
	m.count(1)
	m.u8(pmixGet)
	m.count(1)
	m.text(space)
	m.count(1)
	m.u32(0) // rank
	m.count(1)
	m.size(0) // of directives
	m.count(1)
	m.text(key)
	return m.b
}

// findText returns the value of key out of byte objects, one for each rank: a rank and
// its values.
func findText(u *unpack, key string) (string, error) {
	for len(u.b) > 0 && u.err == nil {
		u.one()
		in := &unpack{b: u.take(u.size()), err: u.err}
		in.one()
		in.text() // namespace
		in.u32()  // rank
		for len(in.b) > 0 && in.err == nil {
			in.one()
			name, kind, value := in.text(), in.u16(), ""
			if in.err == nil && kind != pmixString {
				return "", fmt.Errorf("%q is a value of type %d; allowed is %d", name, kind, pmixString)
			}
			value = in.text()
			if name == key && in.err == nil {
				return value, nil
			}
		}
		u.err = errors.Join(u.err, in.err)
	}
	if u.err != nil {
		return "", u.err
	}
	return "", errors.New("the answer doesn't have it")
}

// ask sends a request and returns its answer behind a status of 0.
func (p *pmix) ask(what string, request []byte) (*unpack, error) {
	fail := func(err error) error { return fmt.Errorf("%s: %w", what, err) }
	tag := p.tag
	p.tag++
	var m pack
	for _, word := range []uint32{p.index, tag, uint32(len(request)), 0} {
		m.u32(word)
	}
	if _, err := p.conn.Write(append(m.b, request...)); err != nil {
		return nil, fail(err)
	}
	for range pmixStray {
		got, body, err := p.hear()
		if err != nil {
			return nil, fail(err)
		}
		if got != tag {
			continue // an event
		}
		u := &unpack{b: body}
		status := u.status()
		switch {
		case u.err != nil:
			return nil, fail(u.err)
		case status != 0:
			return nil, fail(fmt.Errorf("status %d", status))
		}
		return u, nil
	}
	return nil, fail(errors.New("the launcher sends much, and no answer"))
}

// hear reads one message.
func (p *pmix) hear() (tag uint32, body []byte, err error) {
	var header [pmixHeader]byte
	if _, err := io.ReadFull(p.conn, header[:]); err != nil {
		return 0, nil, explainEnd(err)
	}
	n := binary.BigEndian.Uint32(header[8:])
	if n > pmixMessage {
		return 0, nil, fmt.Errorf("a message of %d bytes; allowed are %d", n, pmixMessage)
	}
	var b bytes.Buffer // grows with the bytes that come, as the header may lie
	if _, err := io.CopyN(&b, p.conn, int64(n)); err != nil {
		return 0, nil, explainEnd(err)
	}
	return binary.BigEndian.Uint32(header[4:]), b.Bytes(), nil
}
