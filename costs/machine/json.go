package machine

import (
	"encoding/json"
	"fmt"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// MaxBytes bounds a machine file: rank 0 sends it to all ranks.
const MaxBytes = 32 << 10

// Parse reads a machine file, as [Machine.Format] writes it, and checks all of it. The keys
// version, provenance, links, copy_byte_ns and reduce_byte_ns must be there, and the level of each
// link. Any other key may be left out: it is 0 then. The error lists all complaints, each with
// name:line.
func Parse(name string, data []byte) (*Machine, error) {
	r, err := strictjson.NewReader(name, data)
	if err != nil {
		return nil, err
	}
	p := parser{Reader: r, machine: &Machine{}}
	p.file()
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.machine, nil
}

// parser reads a machine file.
type parser struct {
	*strictjson.Reader
	machine *Machine
}

// keys are those of a file; the first needed of them must be given.
var keys = []string{
	"version", "provenance", "links", "copy_byte_ns", "reduce_byte_ns",
	"peer_copy_ns", "peer_byte_ns", "step_ns", "memory_byte_ns", "cores", "unreadable", "tls", "seal_byte_ns", "open_byte_ns", "eager_max_bytes", "budget_bytes", "noise",
}

const needed = 5

func (p *parser) file() {
	m, line := p.machine, p.Line()
	values := map[string]any{
		"version": &m.Version, "provenance": &m.Provenance, "copy_byte_ns": &m.CopyByte, "reduce_byte_ns": &m.ReduceByte,
		"peer_copy_ns": &m.PeerCopy, "peer_byte_ns": &m.PeerByte, "step_ns": &m.Step, "memory_byte_ns": &m.MemoryByte, "cores": &m.Cores, "unreadable": &m.Unreadable, "tls": &m.TLS, "seal_byte_ns": &m.SealByte, "open_byte_ns": &m.OpenByte,
		"eager_max_bytes": &m.EagerMax, "budget_bytes": &m.Budget, "noise": &m.Noise,
	}
	fitted := true
	given := p.Object("a machine", keys, needed, func(key string) {
		if key == "links" {
			p.Array(`"links"`, p.link)
			return
		}
		at := p.Line()
		fitted = p.Decode(values[key], key) && fitted
		if key == "version" && fitted {
			if err := checkVersion(m.Version); err != nil {
				p.Complain(at, "%w", err)
				m.Version = Version
			}
		}
	})
	if err := m.check(); err != nil && fitted && len(given) >= needed {
		p.Complain(line, "a machine: %w", err)
	}
}

func (p *parser) link() {
	line := p.Line()
	var l Link
	if !p.Decode(&l, "a link") {
		return
	}
	if l.Level == 0 {
		p.Complain(line, `a link: key "level" is missing`)
		return
	}
	for _, other := range p.machine.Links {
		if other.Level == l.Level {
			p.Complain(line, "link %c is given twice", l.Level)
		}
	}
	if err := l.check(); err != nil {
		p.Complain(line, "link %c: %w", l.Level, err)
	}
	p.machine.Links = append(p.machine.Links, l)
}

// Format returns the file of a machine, with a new line at its end. The same machine gives the same
// bytes. A machine that [Parse] would refuse is an error.
func (m *Machine) Format() ([]byte, error) {
	file := *m
	if file.Links == nil {
		file.Links = []Link{} // not null, which is no array
	}
	data, err := json.MarshalIndent(&file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	data = append(data, '\n')
	if _, err := Parse("machine", data); err != nil {
		return nil, err
	}
	return data, nil
}
