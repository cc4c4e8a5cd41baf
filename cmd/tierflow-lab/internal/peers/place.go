package peers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/testdata/cluster"
	"github.com/tierflow/tierflow/testdata/peers"
)

// place is a site after its set-up: a temporary folder and, for several nodes, an
// emulated cluster.
type place struct {
	site
	congestion string // the network's congestion control
	prefix     string // of the cluster's names; empty on one node
}

// enter sets up a place. The caller must leave it.
func (b *benchPeers) enter(ctx context.Context, notes io.Writer) (_ *place, err error) {
	p := &place{site: b.site}
	if p.lab, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program, to launch it: %w", err)
	}
	if p.tierflow, err = findTierflow(p.lab, b.program); err != nil {
		return nil, err
	}
	if p.folder, err = os.MkdirTemp("", "tierflow-peers-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.leave())
		}
	}()
	sources, err := fs.Sub(peers.Drivers, "drivers")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(p.folder, sources); err != nil {
		return nil, err
	}
	if b.nodes > 1 {
		if err := p.makeCluster(ctx, b.rate, b.congestion, notes); err != nil {
			return nil, err
		}
	}
	text, _ := p.runOnFirst(ctx, 10*time.Second, "cat", "/proc/sys/net/ipv4/tcp_congestion_control")
	p.congestion = cmp.Or(strings.TrimSpace(string(text)), "unknown")
	return p, nil
}

// findTierflow returns the path of the program tierflow: the named one, or the one in the
// folder of this program, or else in PATH.
func findTierflow(lab, named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", kit.Usagef("--tierflow: %w", err)
		}
		return path, nil
	}
	const name = "tierflow"
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(lab), name)); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", kit.Usagef("there is no program %s in %s or in PATH: install it beside this one (go install ./cmd/...), or name it with --tierflow", name, filepath.Dir(lab))
	}
	return filepath.Abs(path)
}

// makeCluster makes the cluster, and the commands for other launchers in place of
// ssh.
func (p *place) makeCluster(ctx context.Context, rate, congestion string, notes io.Writer) error {
	prefix := fmt.Sprintf("t%xp", os.Getpid())
	p.rsh = p.script() + " rsh --name " + prefix
	files := map[string]string{
		p.script():            cluster.Script,
		p.folder + "/rsh-ipc": "#!/bin/sh\nnode=$1\nshift\nexec " + p.rsh + " \"$node\" unshare --ipc \"$@\"\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			return err
		}
	}
	fmt.Fprintf(notes, "# making a cluster of %d nodes\n", p.nodes)
	_, err := runCommand(ctx, time.Minute, p.script(), "up", strconv.Itoa(p.nodes), "--rate", rate, "--congestion", congestion, "--name", prefix)
	if err != nil {
		return fmt.Errorf("emulated cluster (--topo 1x%d needs none): %w", p.ranks(), err)
	}
	p.prefix = prefix
	return nil
}

// script returns the path of the cluster's script.
func (p *place) script() string { return filepath.Join(p.folder, "cluster") }

// leave takes down the cluster and the folder, also after an interrupt.
func (p *place) leave() error {
	var errs []error
	if p.prefix != "" {
		_, err := runCommand(context.Background(), time.Minute, p.script(), "down", "--name", p.prefix)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.RemoveAll(p.folder))...)
}

// runOnFirst runs a command on the first node and returns its output.
func (p *place) runOnFirst(ctx context.Context, limit time.Duration, words ...string) ([]byte, error) {
	if p.prefix != "" {
		words = append([]string{p.script(), "exec", "--name", p.prefix, "0"}, words...)
	}
	return runCommand(ctx, limit, words...)
}

// runSetting runs a setting's job and reads its rows. With an error come the rows
// before it.
func (p *place) runSetting(ctx context.Context, s setting, c cells, each time.Duration) ([]peerRow, error) {
	store, err := os.MkdirTemp(p.folder, "store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(store)
	text, err := p.runOnFirst(ctx, jobTime(c, each), p.jobCommand(s, c, each, store)...)
	rows, malformed := parsePeerRows(text)
	return rows, cmp.Or(err, malformed)
}

// jobTime returns the time after which a job is given up. Beside measuring, a job
// starts and finds out how long calls take, longer for large messages. A hanging job must
// not hold up the others for long.
func jobTime(c cells, each time.Duration) time.Duration {
	const (
		start = 10 * time.Second
		cell  = time.Second
		slow  = 20e6 // bytes/s in some twenty calls
	)
	limit := start + time.Duration(len(c.ops)*len(c.bytes))*(3*each+cell)
	for _, n := range c.bytes {
		limit += time.Duration(len(c.ops)) * time.Duration(float64(20*n)/slow*float64(time.Second))
	}
	return limit
}

// readableCommand returns the command for people to read. DIR is the temporary folder,
// and this program goes by its name.
func (p *place) readableCommand(s setting, c cells, each time.Duration) string {
	return p.readableText(p.jobCommand(s, c, each, p.folder))
}

// readableText returns words as a line, without the names of this run.
func (p *place) readableText(words []string) string {
	words = slices.Clone(words)
	replacer := strings.NewReplacer(p.folder, "DIR", p.lab, "tierflow-lab", p.tierflow, "tierflow")
	for i, w := range words {
		w = replacer.Replace(w)
		if strings.ContainsAny(w, " ;") {
			w = strconv.Quote(w)
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}

// runCommand runs a command with its children as a group of processes, and returns its
// output. It ends the group with ctx or after limit.
func runCommand(ctx context.Context, limit time.Duration, words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("takes over %v", limit.Round(time.Millisecond)))
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Env = slices.DeleteFunc(os.Environ(), isPlanVariable)
	endGroup := labkit.GroupOf(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		endGroup()
	}
	if err == nil {
		return out.Bytes(), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return out.Bytes(), withComplaints(err, complaints.Bytes(), out.Bytes())
}

// isPlanVariable reports whether a word of the environment would choose plans in place
// of the built-in rule.
func isPlanVariable(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return name == env.Table || name == env.Plan || name == env.Machine || name == env.Effort
}

// withComplaints adds the first lines of a command's outputs to its failure.
func withComplaints(err error, texts ...[]byte) error {
	const most = 3
	var lines []string
	for _, text := range texts {
		for line := range strings.Lines(string(text)) {
			line = strings.Trim(line, " \t\r\n-=*")
			if line != "" && len(lines) < most && !strings.HasPrefix(line, "{") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(lines, " | "))
}
