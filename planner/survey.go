package planner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// surveyDeadline bounds a measurement, which usually takes some hundredths of a second.
const surveyDeadline = 10 * time.Second

// measureAll measures the machine with goroutine ranks, which it closes if that fails.
func measureAll(comms []*Comm, keep string) error {
	var g errgroup.Group
	for _, c := range comms {
		g.Go(func() error { return c.measureMachine(context.Background(), keep) })
	}
	err := g.Wait()
	if err != nil {
		for _, c := range comms {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// measureMachine measures the machine with all ranks of a communicator that nothing else has
// been started on. Rank 0 puts the numbers together, all use what it has found, and it
// writes that to a file, unless keep is empty. A machine that can't be measured is no error:
// then nothing is known, and Explain says why. A rank that dies meanwhile is one.
func (c *Comm) measureMachine(ctx context.Context, keep string) error {
	if c.topology.Nodes() < 2 {
		c.machine = &choose.Machine{Why: "all ranks are on one node, where prices decide nothing"}
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, surveyDeadline, fmt.Errorf("it takes longer than %v", surveyDeadline))
	defer cancel()
	data, err := c.survey(ctx)
	if err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if why, none := strings.CutPrefix(string(data), noMachine); none {
		c.machine = &choose.Machine{Why: why}
		return nil
	}
	if c.machine, err = parseMachine("ranks", data); err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if keep != "" && c.Rank() == 0 {
		if err := keepFile(keep, data); err != nil {
			c.machine.Why = "it is not kept for the next job: " + err.Error()
		}
	}
	return nil
}

// survey returns the machine's file that rank 0 makes of what pairs of ranks measure, or
// [noMachine] and why.
func (c *Comm) survey(ctx context.Context) ([]byte, error) {
	begun := time.Now()
	if err := c.alongTree(ctx, tasks.Request{Coll: tasks.Barrier}, nil); err != nil {
		return nil, err
	}
	var rows []int64
	counts := make([]int, c.topology.Depth()) // pairs by level
	for k := range counts {
		pairs := pairsAt(c.topology, k)
		counts[k] = len(pairs)
		at, p, err := c.probeLevel(ctx, pairs)
		if err != nil {
			return nil, err
		}
		level := make([]int64, len(pairs)*probeFields)
		if at >= 0 {
			copy(level[at*probeFields:], p[:])
		}
		rows = append(rows, level...)
	}
	hosts := c.Size()
	rows = append(rows, make([]int64, hosts)...)
	rows[len(rows)-hosts+c.Rank()] = hostNumber()
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(rows)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	if err := c.alongTree(ctx, r, asBytes(rows)); err != nil {
		return nil, err
	}
	var data []byte
	if c.Rank() == 0 {
		s := surveyed{comm: c, rows: rows, counts: counts, took: time.Since(begun)}
		data = s.file()
	}
	return c.tellAll(ctx, data)
}

// tellAll returns rank 0's bytes on all ranks.
func (c *Comm) tellAll(ctx context.Context, data []byte) ([]byte, error) {
	size := []int64{int64(len(data))}
	if err := c.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Int64}, asBytes(size)); err != nil {
		return nil, err
	}
	if size[0] < 1 || size[0] > maxMachine {
		return nil, fmt.Errorf("rank 0 announces a machine of %d bytes; allowed are %d", size[0], maxMachine)
	}
	if c.Rank() != 0 {
		data = make([]byte, size[0])
	}
	return data, c.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: size[0], Type: tasks.Uint8}, data)
}

// alongTree runs a collective of a measurement: along one binomial tree between nodes,
// whatever it is. When ranks have just joined each pair that speaks has to connect first, and
// the plans that are otherwise best make several times as many connections.
func (c *Comm) alongTree(ctx context.Context, r tasks.Request, buf []byte) error {
	col, err := c.treeCollective(r, buf)
	if err != nil {
		return err
	}
	return col.Run(ctx)
}

// treeCollective makes a collective for alongTree.
func (c *Comm) treeCollective(r tasks.Request, buf []byte) (*Collective, error) {
	p := tasks.Plan{Shape: tasks.Han}
	for k := range c.topology.Depth() {
		if c.topology.Domains(k) < c.topology.Nodes() {
			p = p.Set(string(c.topology.Level(k).Symbol), tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial})
		}
	}
	d, err := policy{registry: c.registry, forced: tasks.Forced{{Plan: p}}}.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	return c.decided(&d, r, machineCall, nil, buf)
}

// hostNumber is a number of the system that this process runs on: emulated nodes share one.
func hostNumber() int64 {
	h := fnv.New64a()
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		name = []byte(host)
	}
	_, _ = h.Write(name)
	return int64(h.Sum64() >> 1)
}

// surveyed is what rank 0 knows when all pairs have measured.
type surveyed struct {
	comm   *Comm
	rows   []int64 // probes by level and pair, then a number of its host for each rank
	counts []int   // pairs by level
	took   time.Duration
}

// file returns the machine's file, or [noMachine] and why.
func (s *surveyed) file() []byte {
	t := s.comm.topology
	m := machine.Assumed()
	links, at, inside := []machine.Link{}, 0, true
	for k, n := range s.counts {
		symbol := t.Level(k).Symbol
		like, err := m.Link(t.Level(k))
		if err != nil {
			like = m.Links[1] // as another network
		}
		if like.Level = machine.Symbol(symbol); n > 0 { // else nobody speaks there, or only where rank 0 isn't
			like = measuredLink(like, s.median(at, n), inside, t.IsOneProcess())
		}
		links = append(links, like)
		at += n * probeFields
		inside = inside && symbol != levels.NodeSymbol
	}
	m.Links, m.TLS = links, s.comm.Secured() != "" && t.Nodes() > 1
	m.CopyByte, m.ReduceByte = ownSpeed()
	m.Cores = s.cores(s.rows[at:])
	m.Provenance = costs.Provenance{
		Method: choose.Hastily + s.took.Round(time.Millisecond).String(),
		Ranks:  ranksOf(t), Links: s.comm.links, Date: time.Now().UTC().Format(time.RFC3339),
	}
	data, err := m.Format()
	if err != nil {
		return []byte(noMachine + err.Error())
	}
	return data
}

// noMachine begins what rank 0 tells in place of a machine's file: why there is none.
const noMachine = "no machine: "

// median returns the median of each number of n pairs.
func (s *surveyed) median(at, n int) (p probe) {
	for f := range p {
		var all []int64
		for i := range n {
			all = append(all, s.rows[at+i*probeFields+f])
		}
		slices.Sort(all)
		p[f] = all[(n-1)/2]
	}
	return p
}

// cores are the processors that ranks share.
func (s *surveyed) cores(hosts []int64) machine.Cores {
	slices.Sort(hosts)
	n := len(slices.Compact(hosts)) * runtime.NumCPU()
	if s.comm.topology.IsOneProcess() || n < s.comm.topology.Nodes()*runtime.NumCPU() {
		return machine.Cores{InAll: n}
	}
	return machine.Cores{PerNode: runtime.NumCPU()}
}

// measuredLink returns a link with the numbers of a probe. A message's overheads are what a
// stream of small ones takes of either end; what else a round trip takes is latency.
// Ranks inside a node have no wire to share, and those of one process no packets.
func measuredLink(l machine.Link, p probe, inside, oneProcess bool) machine.Link {
	turn := float64(p[probeTurn]) / 2
	l.Send = float64(p[probeSend])
	each := max(0, float64(p[probeMany]-p[probeTurn])/probeStream)
	l.Recv = max(each, l.Send)
	if l.Send+l.Recv > turn {
		share := turn / (l.Send + l.Recv)
		l.Send, l.Recv = l.Send*share, l.Recv*share
	}
	l.Latency = max(0, turn-l.Send-l.Recv)
	l.SendMore, l.RecvMore, l.Gap, l.BurstBytes = 0, 0, 0, 0
	l.SendByte = min(mostByte, max(0, float64(p[probeLead]-p[probeSend])/probeEager))
	l.RecvByte = recvToSend * l.SendByte
	byteNs := perByte(&p)
	if inside || oneProcess {
		l.MessageBytes, l.PacketBytes, l.PacketExtra, l.BufferBytes = 0, 0, 0, 0
	}
	burst := probeBurst - float64(p[probeFirst]-p[probeTurn])/max(byteNs, 1e-3)
	if !inside && burst > 0 && burst*byteNs > float64(p[probeTurn]) { // else it is lost in the round trip
		l.BurstBytes = int64(min(burst, probeBurst))
	}
	switch {
	case inside:
		l.Byte, l.SendByte, l.RecvByte = 0, byteNs, 0
	case l.PacketBytes > 0:
		l.Byte = byteNs * float64(l.PacketBytes) / float64(l.PacketBytes+l.PacketExtra)
	default:
		l.Byte = byteNs
	}
	return l
}

// perByte returns what a byte takes of a stream, ns: by how much the long one takes longer. It
// can't be far from what all of the long one takes but for some round trips, whatever
// disturbed the other.
func perByte(p *probe) float64 {
	turn, brief, whole := float64(p[probeTurn]), float64(p[probeBrief]), float64(p[probeWhole])
	if whole == 0 {
		return max(0, brief-2*turn) / probeShort // a credit takes a round trip
	}
	most := whole / probeLong
	least := max(most/4, (whole-4*turn)/probeLong)
	return min(most, max(least, (whole-brief)/(probeLong-probeShort)))
}

// mostByte bounds what a byte is believed to take of a sender's processor, ns: on a slow link
// it waits until there is room again.
const mostByte = 1

// recvToSend is how many times as long a byte takes of a receiver's processor as of a
// sender's through TCP: as [machine.Assumed] has it.
const recvToSend = 1.5

// Sizes of what rank 0 does by itself.
const (
	ownBytes  = 128 << 10
	ownRounds = 4
)

// ownSpeed returns what rank 0 takes to copy a byte and to add one to another, ns.
func ownSpeed() (copies, adds float64) {
	a, b := make([]float32, ownBytes/4), make([]float32, ownBytes/4)
	copies, adds = math.Inf(1), math.Inf(1)
	for range ownRounds {
		begun := time.Now()
		copy(a, b)
		half := time.Now()
		for i, v := range b {
			a[i] += v
		}
		copies = min(copies, float64(half.Sub(begun)))
		adds = min(adds, float64(time.Since(half)))
	}
	return copies / ownBytes, adds / ownBytes
}
