package join

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/tierflow/tierflow/levels"
)

// enter does what Join says; the caller stops what was started.
func (j *Job) enter(ctx context.Context, cfg *Config) error {
	log := &refusals{log: cfg.logger()}
	defer cfg.closeOpened()
	if err := cfg.invite(ctx); err != nil {
		return err
	}
	self, listeners, err := j.introduce(cfg)
	if err != nil {
		return err
	}
	// Connections wait in the kernel until the table with the job's key is here.
	j.door = &gate{self: j.Rank, size: j.Size, log: log, admit: j.admit, listeners: listeners}
	t, v, err := j.meet(ctx, cfg, self, log)
	if err != nil {
		return err
	}
	watched, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	v.watch(fail)
	return v.end(ctx, j.connect(watched, cfg, t))
}

// connect makes the control tree of the ranks that have met.
func (j *Job) connect(ctx context.Context, cfg *Config, t *table) (err error) {
	j.Peers = t.Peers
	if j.Topology, err = topologyOf(j.Peers); err != nil {
		return err
	}
	j.tree = newTree(j.Topology)
	j.key = jobKey(cfg.Secret, t.Job)
	j.building = make(chan arrival, j.Size)
	j.door.key = j.key
	j.door.open()
	// Who waits in vain for a neighbour must still be able to tell the others.
	deadline, _ := ctx.Deadline()
	growing, stop := context.WithDeadline(ctx, deadline.Add(-spareTime(deadline)))
	defer stop()
	if err := j.growTree(growing); err != nil {
		return err
	}
	j.running.Go(j.dispatch) // waited for by stop, as are readers and writers
	for _, e := range j.edges {
		j.writing.Go(e.write)
		j.running.Go(func() { j.listenTo(e) })
	}
	_, err = j.Exchange(ctx, nil) // all are in, or none returns
	return err
}

// introduce opens the listeners and writes this rank's record.
func (j *Job) introduce(cfg *Config) (*Peer, []net.Listener, error) {
	self := &Peer{
		Rank: j.Rank, Size: j.Size, Version: protocolVersion, Node: cfg.Node,
		PID: os.Getpid(), UID: os.Geteuid(), Hello: cfg.Hello,
	}
	var err error
	if self.Host, err = thisHost(); err != nil || j.Size == 1 {
		return self, nil, err
	}
	filters, err := parseFilters(cfg.Interfaces)
	if err != nil {
		return nil, nil, err
	}
	if j.own, err = ownAddresses(filters); err != nil {
		return nil, nil, err
	}
	listeners, offered, err := openListeners(j.own, j.filtered)
	if err != nil {
		return nil, nil, err
	}
	self.Addrs = offered
	self.NUMA, self.Site = cfg.domain(systemDomain), cfg.Site
	local, path, err := listenUnix()
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return nil, nil, fmt.Errorf("listen for peers on this node: %w", err)
	}
	self.Unix = path
	return self, append(listeners, local), nil
}

// meet exchanges records through rank 0.
func (j *Job) meet(ctx context.Context, cfg *Config, self *Peer, log *refusals) (*table, vigil, error) {
	switch {
	case j.Size == 1:
		return &table{Job: make([]byte, jobIDLen), Peers: []*Peer{self}}, alone{}, nil
	case j.Rank == 0:
		t, h, err := runHost(ctx, cfg, self, log)
		return t, &hostVigil{host: h}, err
	}
	t, c, err := register(ctx, cfg, self)
	return t, &guestVigil{conn: c, self: j.Rank}, err
}

// growTree connects to the parent and waits for the children.
func (j *Job) growTree(ctx context.Context) error {
	found := make(map[levels.Rank]net.Conn)
	err := j.neighbours(ctx, found)
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
		// After a failure too: stop closes them, not before the vigil has said why.
		j.edges = append(j.edges, newEdge(r, c))
	}
	return err
}

func (j *Job) neighbours(ctx context.Context, found map[levels.Rank]net.Conn) error {
	if up := j.tree.parent[j.Rank]; up >= 0 {
		c, err := j.dial(ctx, up, purposeTree, j.sameNode(up))
		if err != nil {
			return err
		}
		found[up] = c
	}
	expected := map[levels.Rank]bool{}
	for _, r := range j.tree.children(j.Rank) {
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
			var late []levels.Rank
			for _, r := range j.tree.children(j.Rank) {
				if expected[r] {
					late = append(late, r)
				}
			}
			return &PeerError{late[0], fmt.Errorf("%s joined but did not connect to rank %d: %w",
				ranksText(late), j.Rank, context.Cause(ctx))}
		}
	}
	return nil
}

// endBuilding ends the time for connections of the tree, and returns those that
// nobody has taken.
func (j *Job) endBuilding() (late []arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.building) > 0 {
		late = append(late, <-j.building)
	}
	j.building = nil
	return late
}
