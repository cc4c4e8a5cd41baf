package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/process"
)

// Join enters the job: it returns when all ranks are here and the control tree
// stands, or with an error that names the ranks at fault ([JoinError],
// [PeerError], [ErrSecret], [ErrVersion], [ErrTLS]). Without a deadline in ctx it gives the
// ranks cfg.Timeout to come. It closes cfg.Listener in any case.
//
// The topology has a level of NUMA domains if on some node ranks are bound to
// different ones, and every rank of the job is bound to one; and one of sites if
// every rank names its site, and there are several.
func Join(ctx context.Context, cfg Config) (*Job, error) {
	if cfg.Listener != nil {
		defer cfg.Listener.Close()
	}
	if cfg.Size == 0 {
		cfg.Size = 1
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	patience := cmp.Or(cfg.Timeout, joinTime)
	ctx, cancel := withDefault(ctx, patience+min(patience/9, tellTime)) // spareTime takes away as much
	defer cancel()
	j := &Job{
		Rank: cfg.Rank, Size: cfg.Size,
		leave:      cfg.Leave,
		inbox:      newQueue[delivery](inboxSize),
		exchanging: make(chan struct{}, 1),
		closed:     make(chan struct{}),
		absent:     make([]error, cfg.Size),
		exchanges:  map[uint32]*exchange{},
	}
	j.life, j.endLife = context.WithCancel(context.Background())
	if err := j.enter(ctx, &cfg); err != nil {
		j.sayWhy(err)
		cancel()
		j.stop(ctx)
		return nil, fmt.Errorf("join: %w", err)
	}
	return j, nil
}

// enter does what Join says; the caller stops what was started.
func (j *Job) enter(ctx context.Context, cfg *Config) error {
	log := &refusals{log: cfg.logger()}
	defer cfg.closeOpened()
	entrusted := cfg.Share != nil && cfg.Secret == ""
	if err := cfg.invite(ctx); err != nil {
		return err
	}
	guard, err := newGuard(cfg)
	if err != nil {
		return err
	}
	if why := cfg.secretFault(); why != "" && j.Rank == 0 {
		cfg.logger().Warn("the job's secret keeps few out", "why", why, "better", "openssl rand -hex 32, on all ranks")
	}
	j.guard = guard
	self, listeners, err := j.introduce(cfg)
	if err != nil {
		return err
	}
	// Connections wait in the kernel until the place with the job's key is here.
	j.door = &gate{self: j.Rank, size: j.Size, guard: guard, log: log, admit: j.admit, listeners: listeners}
	p, t, v, err := j.meet(ctx, cfg, self, log)
	if err != nil {
		return err
	}
	watched, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	v.watch(fail)
	err = v.end(ctx, j.connect(watched, cfg, self, p, t))
	if err == nil && j.guard != nil && j.Rank == 0 {
		cfg.logger().Info("connections between hosts are sealed", "by", j.Secured())
		if entrusted && j.guard.files == nil {
			cfg.logger().Warn("the launcher carried the job's secret: unless it encrypts, whoever is on the way can have read it", "launcher", cfg.Origin)
		}
	}
	return err
}

// connect makes the control tree of all ranks. t is rank 0's.
func (j *Job) connect(ctx context.Context, cfg *Config, self *Peer, p *place, t *table) (err error) {
	j.Peers = make([]*Peer, j.Size) // as far as they are known
	j.Peers[j.Rank] = self
	if p.Up != nil {
		j.Peers[p.Up.Rank] = p.Up
	}
	j.key = jobKey(cfg.Secret, p.Job)
	j.building = make(chan arrival, j.Size)
	j.door.key = j.key
	j.door.open()
	// After a vain wait for a neighbour there must be time to tell the others.
	deadline, _ := ctx.Deadline()
	growing, stop := context.WithDeadline(ctx, deadline.Add(-spareTime(deadline)))
	defer stop()
	if err := j.growTree(growing, p); err != nil {
		return err
	}
	if err := j.learn(growing, p, t); err != nil {
		return err
	}
	j.standing = true
	j.running.Go(j.dispatch) // waited for by stop, as are readers and writers
	for _, e := range j.edges {
		j.serve(e)
	}
	if _, err = j.Exchange(ctx, nil); err == nil { // all are in, or none returns
		j.mu.Lock()
		j.settled = true
		j.needHealing()
		j.mu.Unlock()
	}
	return err
}

// learn takes the table from the parent and passes it on to the children. Rank 0 has it.
func (j *Job) learn(ctx context.Context, p *place, t *table) error {
	var f frame
	if t == nil {
		up := j.edgeTo(p.Up.Rank)
		err := within(ctx, up.conn, func() (err error) {
			f, err = readFrame(up.conn, j.Size, max(j.Size*maxRecord, MaxPayload))
			switch {
			case err != nil || f.kind == frameTable:
			case f.kind == frameLost: // the parent leaves
				err = &PeerError{f.from, f.loss()}
			default:
				err = fmt.Errorf("frame of kind %d in place of the table of ranks", f.kind)
			}
			return err
		})
		if err == nil {
			t, err = parseTable(f.payload, j.Size)
		}
		_, named := errors.AsType[*PeerError](err)
		switch {
		case named:
			return err
		case timedOut(err): // the parent may have waited for it too
			return &PeerError{0, fmt.Errorf("its table of ranks has not come to rank %d: %w", j.Rank, err)}
		case err != nil:
			return &PeerError{p.Up.Rank, err}
		}
	} else {
		f = frame{kind: frameTable, to: everyone, payload: t.encode()}
	}
	b := f.encode()
	deadline, _ := ctx.Deadline()
	var passed sync.WaitGroup
	for _, r := range p.Down {
		passed.Go(func() {
			deliver(j.edgeTo(r).conn, b, deadline)
			j.edgeTo(r).conn.SetWriteDeadline(time.Time{})
		})
	}
	passed.Wait()
	j.Peers = t.Peers
	var err error
	if j.Topology, err = topologyOf(j.Peers); err == nil {
		j.tree = newTree(j.Topology)
	}
	return err
}

// introduce opens the listeners and writes this rank's record.
func (j *Job) introduce(cfg *Config) (*Peer, []net.Listener, error) {
	self := &Peer{
		Rank: j.Rank, Size: j.Size, Version: protocolVersion, Node: cfg.Node,
		PID: os.Getpid(), Born: process.Born(os.Getpid()), Space: process.Space(), UID: os.Geteuid(), Hello: cfg.Hello,
	}
	var nics map[netip.Addr]string
	var err error
	if self.Host, err = thisHost(); err != nil {
		return self, nil, err
	}
	if j.Size > 1 {
		if j.own, nics, err = cfg.addresses(); err != nil {
			return nil, nil, err
		}
	}
	if self.Kind = hostKind(os.DirFS("/"), self.Host.Name, interfacesOf(j.own, nics)); j.Size == 1 {
		return self, nil, nil
	}
	j.sharesPorts = cfg.Ports != ""
	j.filtered = len(cfg.Interfaces) > 0 || cfg.isLocal()
	listeners, offered, how, err := cfg.openListeners(j.own, j.filtered)
	if err != nil {
		return nil, nil, err
	}
	self.Addrs, self.Offer = offered, how
	self.NUMA, self.Site = cfg.domain(systemDomain), cfg.Site
	local, path, err := listenUnix()
	if err != nil {
		closeListeners(listeners)
		return nil, nil, fmt.Errorf("listen for peers on this node: %w", err)
	}
	self.Unix = path
	return self, append(listeners, local), nil
}

// meet exchanges records through rank 0. It alone gets the table.
func (j *Job) meet(ctx context.Context, cfg *Config, self *Peer, log *refusals) (*place, *table, monitor, error) {
	if j.Rank > 0 {
		p, c, err := register(ctx, cfg, j.guard, self)
		return p, nil, &guestMonitor{conn: c, self: j.Rank}, err
	}
	if j.Size == 1 {
		t := &table{Job: make([]byte, jobIDLen), Peers: []*Peer{self}}
		return &place{Job: t.Job}, t, noMonitor{}, nil
	}
	p, t, h, err := runHost(ctx, cfg, j.guard, self, log)
	return p, t, &hostMonitor{host: h}, err
}

// growTree connects to the parent and waits for the children.
func (j *Job) growTree(ctx context.Context, p *place) error {
	found := make(map[levels.Rank]net.Conn)
	err := j.neighbours(ctx, p, found)
	for _, a := range j.endBuilding() {
		if err == nil {
			a.conn.Close()
		} else {
			j.edges = append(j.edges, newEdge(a.peer, a.conn))
		}
	}
	for r, c := range found {
		if err == nil {
			err = watchSilence(c)
		}
		// After a failure too: stop closes them, not before the monitor has said why.
		e := newEdge(r, c)
		e.stands.Store(true)
		e.dialled = p.Up != nil && r == p.Up.Rank
		j.edges = append(j.edges, e)
	}
	return err
}

func (j *Job) neighbours(ctx context.Context, p *place, found map[levels.Rank]net.Conn) error {
	if p.Up != nil {
		up := p.Up.Rank
		c, err := j.dial(ctx, up, purposeTree, j.sameNode(up))
		if err != nil {
			return err
		}
		found[up] = c
	}
	expected := map[levels.Rank]bool{}
	for _, r := range p.Down {
		expected[r] = true
	}
	for len(expected) > 0 {
		select {
		case a := <-j.building:
			if !expected[a.peer] {
				a.conn.Close()
				continue
			}
			delete(expected, a.peer)
			found[a.peer] = a.conn
		case <-ctx.Done():
			if _, known := errors.AsType[*JoinError](context.Cause(ctx)); known {
				return context.Cause(ctx) // the late ranks may have heard it first
			}
			var missing []levels.Rank
			for _, r := range p.Down {
				if expected[r] {
					missing = append(missing, r)
				}
			}
			return &PeerError{missing[0], fmt.Errorf("%s joined but did not connect to rank %d: %w",
				ranksText(missing), j.Rank, context.Cause(ctx))}
		}
	}
	return nil
}

// endBuilding ends the time for connections of the tree, and returns the
// unclaimed ones.
func (j *Job) endBuilding() (unclaimed []arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.building) > 0 {
		unclaimed = append(unclaimed, <-j.building)
	}
	j.building = nil
	return unclaimed
}
