//go:build linux

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["islander"] = islander }

// islander sums with those it can go on with, and says who they are, or why it can't. After a loss it goes on until one of
// them sees a file.
func islander(args []string) {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	check(err)
	me := comm.Rank()
	for said, lost, round := false, false, 1; ; round++ {
		ranks := []int64{1 << me, 0} // and whether it ends
		if _, missing := os.Stat(args[0]); missing == nil {
			ranks[1] = 1
		}
		if err = planner.Allreduce(ctx, comm, ranks, ranks, tasks.Sum); planner.Recoverable(err) {
			fmt.Printf("rank %d heard: %v\n", me, err)
			said, lost = false, true
			var change planner.Change
			if change, err = comm.Shrink(ctx); err == nil {
				comm = change.Comm
				continue
			}
		}
		if err != nil || ranks[1] > 0 {
			break
		}
		switch {
		case said:
		case lost:
			fmt.Printf("rank %d goes on with %b\n", me, ranks[0])
		default:
			fmt.Printf("rank %d has begun\n", me)
		}
		said = true
		if round%50 == 0 {
			fmt.Println("another 50 sums")
		}
		pause(10 * time.Millisecond)
	}
	if errors.Is(err, planner.ErrMinority) || errors.Is(err, planner.ErrExcluded) {
		fmt.Printf("rank %d stands still: %v\n", me, err)
		return
	}
	check(err)
	check(comm.Close())
}

// way is from one node to another one.
type way = [2]int

// cut drops what nodes send to others.
func (c *cluster) cut(t *testing.T, ways ...way) { c.route(t, "add", ways) }

// heal lets it through again.
func (c *cluster) heal(t *testing.T, ways ...way) { c.route(t, "del", ways) }

// route changes the routes of all ways at once, before what else wants the processors: on a busy machine, too, a cable
// is out for about as long as a test says.
func (c *cluster) route(t *testing.T, what string, ways []way) {
	t.Helper()
	if c.hosts == "" {
		hosts, err := exec.Command(c.script, "hosts", "--name", c.name).Output()
		if err != nil {
			t.Fatal(err)
		}
		c.hosts = string(hosts)
	}
	address := regexp.MustCompile(`[0-9a-f]*[.:][0-9a-f.:]+`)
	var script strings.Builder
	for _, w := range ways {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^.*\bnode%d\b.*$`, w[1])).FindString(c.hosts)
		for _, a := range address.FindAllString(line, -1) {
			fmt.Fprintf(&script, "ip -n %s%d route %s blackhole %s\n", c.name, w[0], what, a)
		}
	}
	if text, err := exec.Command("nice", "-n", "-15", "sh", "-exc", script.String()).CombinedOutput(); err != nil {
		t.Fatalf("routes: %v\n%s", err, text)
	}
}

// partition is a network that parts.
type partition struct {
	name   string
	nodes  int
	cuts   []way // what one node sends to another one
	goOn   []int // ranks
	healed bool  // as soon as these go on
}

// When the network parts, at most one side goes on, and the others learn that they must not: none of them ever goes on, also
// when the network heals later. It doesn't heal with TIERFLOW_TEST_LONG: then a minority waits for half a minute more.
func TestPartition(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ranks count as lost after ten seconds, one after the other")
	}
	heals := os.Getenv("TIERFLOW_TEST_LONG") == ""
	var all sync.WaitGroup
	for i, test := range []partition{
		{"3|2", 5, []way{{0, 3}, {0, 4}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}}, []int{0, 1, 2}, heals},
		{"2|3", 5, []way{{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {4, 0}, {4, 1}}, []int{2, 3, 4}, true},
		{"2|2", 4, []way{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 0}, {3, 1}}, []int{0, 1}, heals},
		{"1|1", 2, []way{{0, 1}, {1, 0}}, []int{0}, true},
		{"one way", 3, []way{{2, 0}}, []int{0, 1}, false},
	} {
		all.Go(func() { // they wait more than they compute, so all at once
			t.Run(test.name, func(t *testing.T) { test.play(t, string(rune('p'+i))) })
		})
	}
	all.Wait()
}

// play lets a cluster with a name part.
func (p *partition) play(t *testing.T, name string) {
	c := newCluster(t, p.nodes, name)
	var hosts []string
	for n := range p.nodes {
		hosts = append(hosts, fmt.Sprintf("node%d:1", n))
	}
	end := filepath.Join(t.TempDir(), "end")
	cmd, out := c.start(t, Options{Hosts: strings.Join(hosts, ","), Min: 1, Program: rankLine(t, "islander", end), Timeout: forever})
	said := func(what string, n int) {
		t.Helper()
		eventually(t, func() error {
			if got := count(out.String(), what); got < n {
				return fmt.Errorf("%d of %d ranks said %q:\n%s", got, n, what, out.String())
			}
			return nil
		})
	}
	said("has begun", p.nodes)
	c.cut(t, p.cuts...)
	said("goes on with", len(p.goOn))
	if p.healed {
		c.heal(t, p.cuts...)
	}
	// Those who go on are there until the others know: once they had ended nobody would be left who could tell.
	for r := range p.nodes {
		if !slices.Contains(p.goOn, r) {
			said(fmt.Sprintf("rank %d stands still", r), 1)
		}
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	members := int64(0)
	for _, r := range p.goOn {
		members |= 1 << r
	}
	for r := range p.nodes {
		want := fmt.Sprintf("rank %d stands still", r)
		if members>>r&1 != 0 {
			want = fmt.Sprintf("rank %d goes on with %b\n", r, members)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("not said: %q", want)
		}
	}
	checkOneSide(t, out.String())
	if t.Failed() {
		t.Logf("want ranks %v to go on:\n%s", p.goOn, out.String())
	}
}

// checkOneSide looks at who has gone on with whom: of two such groups one has the other in it. When the network heals, a
// group may lose one of its own, but then it goes on without that one.
func checkOneSide(t *testing.T, text string) {
	t.Helper()
	var groups []int64
	for _, m := range regexp.MustCompile(`rank (\d+) goes on with ([01]+)`).FindAllStringSubmatch(text, -1) {
		rank, _ := strconv.Atoi(m[1])
		group, err := strconv.ParseInt(m[2], 2, 64)
		if err != nil || group>>rank&1 == 0 {
			t.Errorf("rank %d goes on with %s (%v)", rank, m[2], err)
		}
		for _, other := range groups {
			if group&other != group && group&other != other {
				t.Errorf("two sides go on: %b and %b", other, group)
			}
		}
		groups = append(groups, group)
	}
}
