package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// healthy is the examination of a job in which all is well, before any judgement.
func healthy(t *testing.T, topology string) *examination {
	t.Helper()
	topo := tasktest.Topology(t, topology)
	e := &examination{job: &join.Job{Size: topo.Size(), Topology: topo}, world: new(executor.World), limit: time.Second}
	for r := range topo.Size() {
		e.job.Peers = append(e.job.Peers, &join.Peer{Host: join.Host{Name: fmt.Sprint("h", topo.Node(levels.Rank(r)))}})
		e.all = append(e.all, &facts{
			Rank: r, Launcher: "pmi", Host: fmt.Sprint("h", topo.Node(levels.Rank(r))), Node: fmt.Sprint("n", topo.Node(levels.Rank(r))),
			CPUs: "0-7", CPUCount: 8, HostCPUs: 8, FilesHard: 4096, Readable: true, Congestion: "cubic", System: "linux/amd64 6.1",
		})
		for a := range r {
			v := visit{a, r, pairs.Visit{Latency: 20 * time.Microsecond, Out: 1e9, Back: 1e9}}
			e.visits = append(e.visits, v)
		}
	}
	e.self = e.all[0]
	return e
}

// sealAll makes the ranks' connections TLS.
func sealAll(e *examination) {
	for _, f := range e.all {
		f.Secured, f.HasAES, f.SealRate, f.Processor, f.Expires = "TLS 1.3", true, 4e9, "old", time.Now().AddDate(0, 1, 0)
	}
}

func TestFindings(t *testing.T) {
	always, err := readSlowest(nil)
	if err != nil {
		t.Fatal(err)
	}
	tight, err := readSlowest([]string{"i=10gbit,10us"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		topology string // empty: 2x2
		spoil    func(e *examination)
		want     slowest
		problems []string // what each has
		warnings []string
	}{
		"well":    {spoil: func(*examination) {}},
		"dead":    {spoil: func(e *examination) { e.errors = []string{"r0>r3: 65536 bytes there: timeout"} }, problems: []string{"measurement ended: r0>r3: 65536"}},
		"no path": {spoil: func(e *examination) { e.all[1].Unreached = []failure{{2, "at 10.0.0.3:7: refused"}} }, problems: []string{"rank 1 (h0) has no connection to rank 2 (h1) at 10.0.0.3:7: refused"}},
		"narrow": {
			spoil: func(e *examination) {
				e.all[0].Narrow, e.all[1].Narrow, e.all[3].Narrow = []narrow{{2, 1500}, {3, 1500}}, []narrow{{2, 1500}}, []narrow{{0, 9000}}
			},
			problems: []string{
				"small packets from h0 come to h1, those of 1500 bytes, such as r0>r2, don't (3 pairs of ranks): a network on the way",
				"small packets from h1 come to h0, those of 9000 bytes, such as r3>r0, don't (1 pair of ranks): a network on the way",
			},
		},
		"no shm": {spoil: func(e *examination) { e.all[3].Error = "share memory: no" }, problems: []string{"rank 3 (h1): share memory: no"}},
		"files": {
			spoil:    func(e *examination) { e.all[2].FilesHard = 64 },
			problems: []string{"rank 2 (h1): the hard limit of open files is 64"},
		},
		"slow": {
			spoil:    func(e *examination) { e.visits[1].Back = 1e6 },
			problems: []string{"1 of 4 pairs of level network are slower than 50 MB/s, 1ms: r0-r2 1 MB/s"},
		},
		"late": {
			spoil:    func(e *examination) { e.visits[0].Latency = time.Second },
			problems: []string{"1 of 2 pairs of level node are slower than 250 MB/s, 100µs: r0-r1 1s"},
		},
		"not as told": {
			want: tight, spoil: func(*examination) {},
			problems: []string{"4 of 4 pairs of level network are slower than 1.25 GB/s, 10µs"},
		},
		"a slow node": {
			topology: "4x2", problems: []string{"12 of 24 pairs of level network are slower than 50 MB/s, 1ms: all are with node n2: r0-r4 1 MB/s"},
			spoil: func(e *examination) {
				for n, v := range e.visits {
					if (v.A/2 == 2) != (v.B/2 == 2) {
						e.visits[n].Back = 1e6
					}
				}
			},
		},
		"two slow nodes": {
			topology: "4x1", problems: []string{"5 of 6 pairs of level network are slower than 50 MB/s, 1ms: r0-r1 1 MB/s"},
			spoil: func(e *examination) {
				for n, v := range e.visits {
					if v.A == 1 || v.B == 1 || v.A == 2 || v.B == 2 {
						e.visits[n].Back = 1e6
					}
				}
			},
		},
		"off": {
			spoil:    func(e *examination) { e.visits[1].Out = 2e8 },
			warnings: []string{"1 of 4 pairs of level network are 4 times slower than the median (1 GB/s, 20µs): r0-r2 200 MB/s"},
		},
		"crowded": {
			spoil: func(e *examination) {
				e.visits[0].Latency = time.Second
				e.all[0].CPUs, e.all[0].CPUCount, e.all[1].CPUs, e.all[1].CPUCount = "3", 1, "3", 1
			},
			warnings: []string{"ranks 0-1 of node n0 share 1 CPU (3)"},
		},
		"one thread": {spoil: func(e *examination) { e.all[2].Threads = 1 }, warnings: []string{"GOMAXPROCS=1 on rank 2: a collective that is on its way"}},
		"quota":      {spoil: func(e *examination) { e.all[0].Quota, e.all[1].Quota = 1.5, 1.5 }, warnings: []string{"ranks 0-1 of node n0 may use 1.5 CPUs"}},
		"versions":   {spoil: func(e *examination) { e.all[3].Version = "v2" }, warnings: []string{"different versions of tierflow:  on ranks 0-2; v2 on rank 3"}},
		"congestion": {spoil: func(e *examination) { e.all[3].Congestion = "reno" }, warnings: []string{"cubic on ranks 0-2; reno on rank 3"}},
		"launchers":  {spoil: func(e *examination) { e.all[0].Launcher = "slurm" }, warnings: []string{"different launchers: slurm on rank 0; pmi on ranks 1-3"}},
		"unread": {
			spoil:    func(e *examination) { e.all[0].Readable, e.all[0].Ptrace = false, "2" },
			warnings: []string{"memory of rank 0 can't be read by others of the node (ptrace_scope 2"},
		},
		"expiring": {
			spoil:    func(e *examination) { sealAll(e); e.all[2].Expires = time.Now().Add(50 * time.Hour) },
			warnings: []string{"rank 2 (h1): its certificate expires in 50h0m0s, on "},
		},
		"expired": {
			spoil:    func(e *examination) { sealAll(e); e.all[2].Expires = time.Now().Add(-time.Hour) },
			problems: []string{"rank 2 (h1): its certificate expired on "},
		},
		"without AES": {
			spoil:    func(e *examination) { sealAll(e); e.all[3].HasAES, e.all[3].Processor = false, e.all[2].Processor },
			warnings: []string{"the processor of rank 3 (old) has no instructions for AES"},
		},
		"entrusted": {
			spoil:    func(e *examination) { sealAll(e); e.all[0].Entrust, e.all[0].Expires = true, time.Time{} },
			warnings: []string{"the job's secret came by the launcher (pmi)"},
		},
		"clocks":  {spoil: func(e *examination) { e.visits[1].Ahead = -time.Minute }, warnings: []string{"clock of rank 2 (h1) is -1m0s ahead"}},
		"no time": {spoil: func(e *examination) { e.visits, e.unmeasured = e.visits[:2], 4 }, warnings: []string{"4 of 6 pairs were not measured: --time is 1s"}},
		"untried": {spoil: func(e *examination) { e.all[0].Untried = 2 }, warnings: []string{"2 connections were not tried"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := healthy(t, cmp.Or(c.topology, "2x2"))
			c.spoil(e)
			want := c.want
			if want == nil {
				want = always
			}
			r := e.report(want, nil)
			check := func(what string, got, want []string) {
				if len(got) != len(want) {
					t.Fatalf("%ss: %q; want %q", what, got, want)
				}
				for i := range got {
					if !strings.Contains(got[i], want[i]) {
						t.Errorf("%s %q; want %q", what, got[i], want[i])
					}
				}
			}
			check("problem", r.Problems, c.problems)
			check("warning", r.Warnings, c.warnings)
			if r.Healthy != (len(c.problems) == 0) {
				t.Errorf("healthy: %v", r.Healthy)
			}
			text := string(r.text(io.Discard))
			first, rest, _ := strings.Cut(text, "\n")
			if first != r.Verdict || len(c.problems) > 0 && !strings.HasPrefix(rest, "  problem: ") {
				t.Errorf("the verdict isn't first:\n%s", text)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for want, e := range map[string]*examination{
		"well: 4 ranks on 2 nodes, 6 pairs measured in both directions, in ": healthy(t, "2x2"),
		"well: this host, in no job, in ":                                    {self: &facts{}, began: time.Now()},
	} {
		if got := e.report(slowest{}, nil).Verdict; !strings.HasPrefix(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	}
	e := &examination{self: &facts{Rank: 2, Unreached: []failure{{Rank: 7, Why: "at 10.0.0.3:7: refused"}}}}
	r := e.report(slowest{}, errors.New("rank 1 has died\nand more"))
	if want := "not well, 2 problems: rank 2 alone, without word from the others, in "; !strings.HasPrefix(r.Verdict, want) {
		t.Errorf("%q; want %q", r.Verdict, want)
	}
}
