package goal

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/tierflow/tierflow/levels"
)

// The lines of a schedule.
var (
	headLine  = regexp.MustCompile(`^num_ranks ([0-9]+)$`)
	rankLine  = regexp.MustCompile(`^rank ([0-9]+) \{$`)
	opLine    = regexp.MustCompile(`^(?:([a-zA-Z][a-zA-Z0-9_]*): )?(send|recv) ([0-9]+)b (to|from) ([0-9]+)(?: tag ([0-9]+))?$`)
	calcLine  = regexp.MustCompile(`^(?:([a-zA-Z][a-zA-Z0-9_]*): )?calc ([0-9]+)$`)
	afterLine = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9_]*) requires ([a-zA-Z][a-zA-Z0-9_]*)$`)
	comment   = regexp.MustCompile(`\s*//.*$`)
	spaces    = regexp.MustCompile(`[ \t]+`)
)

// mostRanks bounds the memory that [Parse] allocates for a schedule's first line.
const mostRanks = 1 << 20

// Parse reads a schedule as [Schedule.Format] writes it. Labels may be any words, white
// space and comments after // don't count. Of GOAL it leaves out the processor and the
// NIC of an op, irequires and messages from anybody: they are errors, each with name:line.
func Parse(name string, text []byte) (*Schedule, error) {
	p := parser{rank: -1, seen: map[int]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		line := comment.ReplaceAll(lines.Bytes(), nil)
		line = bytes.TrimSpace(spaces.ReplaceAll(line, []byte(" ")))
		if len(line) == 0 {
			continue
		}
		if err := p.line(string(line)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if p.rank >= 0 || p.schedule.Ranks == nil {
		return nil, fmt.Errorf("%s: it ends before it is complete: rank %d is open", name, p.rank)
	}
	return &p.schedule, nil
}

// parser reads a schedule line by line.
type parser struct {
	schedule Schedule
	rank     int // of the open block; -1: none
	seen     map[int]bool
	labels   map[string]int32
}

func (p *parser) line(line string) error {
	if m := headLine.FindStringSubmatch(line); m != nil && p.schedule.Ranks == nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > mostRanks {
			return fmt.Errorf("%s ranks; allowed are 1 to %d", m[1], mostRanks)
		}
		p.schedule.Ranks = make([][]Op, n)
		return nil
	}
	if p.schedule.Ranks == nil {
		return fmt.Errorf("%q; the first line is num_ranks and a number", line)
	}
	if p.rank < 0 {
		return p.open(line)
	}
	if line == "}" {
		p.rank = -1
		return nil
	}
	if m := opLine.FindStringSubmatch(line); m != nil && (m[2] == "send") == (m[4] == "to") {
		return p.message(m)
	}
	if m := calcLine.FindStringSubmatch(line); m != nil {
		ns, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return err
		}
		return p.add(m[1], Op{Kind: Calc, Size: ns})
	}
	if m := afterLine.FindStringSubmatch(line); m != nil {
		return p.order(m[1], m[2])
	}
	return fmt.Errorf("%q; allowed are send N b to RANK, recv N b from RANK, calc NS, LABEL requires LABEL and }", line)
}

// open begins a rank's block.
func (p *parser) open(line string) error {
	m := rankLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("%q; here begins a rank: rank 0 {", line)
	}
	rank, err := strconv.Atoi(m[1])
	if err != nil || rank >= len(p.schedule.Ranks) {
		return fmt.Errorf("rank %s of %d", m[1], len(p.schedule.Ranks))
	}
	if p.seen[rank] {
		return fmt.Errorf("rank %d is there twice", rank)
	}
	p.rank, p.labels, p.seen[rank] = rank, map[string]int32{}, true
	return nil
}

// message adds a send or a recv.
func (p *parser) message(m []string) error {
	op := Op{Kind: Send}
	if m[2] == "recv" {
		op.Kind = Recv
	}
	peer, err := strconv.Atoi(m[5])
	if err != nil || peer >= len(p.schedule.Ranks) {
		return fmt.Errorf("rank %s of %d", m[5], len(p.schedule.Ranks))
	}
	op.Peer = levels.Rank(peer)
	if op.Size, err = strconv.ParseInt(m[3], 10, 64); err != nil {
		return err
	}
	if m[6] != "" {
		if op.Tag, err = strconv.ParseInt(m[6], 10, 64); err != nil {
			return err
		}
	}
	return p.add(m[1], op)
}

// add adds an op, with a label if it has one.
func (p *parser) add(label string, op Op) error {
	ops := &p.schedule.Ranks[p.rank]
	if _, known := p.labels[label]; known && label != "" {
		return fmt.Errorf("label %s is there twice", label)
	}
	p.labels[label] = int32(len(*ops))
	*ops = append(*ops, op)
	return nil
}

// order makes an op wait for another one.
func (p *parser) order(later, earlier string) error {
	a, known := p.labels[later]
	b, both := p.labels[earlier]
	switch {
	case !known:
		return fmt.Errorf("label %s is not known", later)
	case !both:
		return fmt.Errorf("label %s is not known", earlier)
	case b >= a:
		return fmt.Errorf("%s requires %s, which comes after it", later, earlier)
	}
	op := &p.schedule.Ranks[p.rank][a]
	op.After = append(op.After, b)
	return nil
}
