package launch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/files"
)

const (
	maxSlots   = 1 << 16
	maxHost    = 255
	maxReports = 10 // complaints about one host file

	maxHostfile = 16 << 20 // bytes
)

// node is one entry of a host list.
type node struct {
	host  string
	slots int
}

// hostsMayChange reports whether a later look may find other hosts.
func (o *Options) hostsMayChange() bool {
	return o.HostsCommand != "" || o.Hostfile != "" && o.Hostfile != "-"
}

// hostsTime bounds the command that prints the hosts.
const hostsTime = 30 * time.Second

// askCommand returns the hosts that a command prints.
func askCommand(ctx context.Context, line string) ([]node, error) {
	ctx, stop := context.WithTimeout(ctx, hostsTime)
	defer stop()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = groupAttr()
	cmd.Cancel = func() error {
		signalGroup(cmd.Process.Pid, syscall.SIGKILL)
		return nil
	}
	name := fmt.Sprintf("hosts by %q", line)
	out, complaint := head{most: maxHostfile + 1}, head{most: 1 << 10}
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it takes longer than %v", hostsTime)
		}
		return nil, fmt.Errorf("%s: %w%s", name, err, quoteTail("it says", slices.Collect(strings.SplitSeq(strings.TrimSpace(complaint.b.String()), "\n"))))
	}
	return parseHostfile(files.Limit(&out.b, name, maxHostfile), name)
}

// head keeps the first bytes of what is written to it.
type head struct {
	b    bytes.Buffer
	most int
}

func (h *head) Write(p []byte) (int, error) {
	h.b.Write(p[:min(len(p), h.most-h.b.Len())])
	return len(p), nil
}

// hosts returns the job's nodes from the list, the file, the command, or, without any, this machine.
func (o *Options) hosts(ctx context.Context, stdin io.Reader) ([]node, error) {
	switch {
	case o.HostsCommand != "":
		return askCommand(ctx, o.HostsCommand)
	case o.Hosts != "":
		return parseHostList(o.Hosts)
	case o.Hostfile == "-":
		return parseHostfile(files.Limit(stdin, "standard input", maxHostfile), "standard input")
	case o.Hostfile != "":
		f, err := os.Open(o.Hostfile)
		if err != nil {
			return nil, fmt.Errorf("host file: %w", err)
		}
		defer f.Close()
		return parseHostfile(files.Limit(f, o.Hostfile, maxHostfile), o.Hostfile)
	}
	slots := o.Ranks
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	return []node{{host: "localhost", slots: slots}}, nil
}

// parseHostList reads host[:slots],host[:slots]…
func parseHostList(list string) ([]node, error) {
	var nodes []node
	var errs []error
	for i, item := range strings.Split(list, ",") {
		n, err := parseHost(strings.TrimSpace(item))
		if err != nil {
			errs = append(errs, fmt.Errorf("host list, item %d: %w", i+1, err))
			continue
		}
		nodes = addNode(nodes, n)
	}
	return nodes, errors.Join(errs...)
}

// parseHostfile reads one host per line. Errors call the file name.
func parseHostfile(r io.Reader, name string) ([]node, error) {
	var nodes []node
	var errs []error
	lines := bufio.NewScanner(r)
	number := 0
	for lines.Scan() && len(errs) < maxReports {
		number++
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := parseHost(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
			continue
		}
		nodes = addNode(nodes, n)
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s:%d: %w", name, number+1, err))
	}
	if len(nodes) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: no hosts", name))
	}
	return nodes, errors.Join(errs...)
}

// parseHost reads "host", "host:slots" or "host slots=N".
func parseHost(text string) (node, error) {
	n := node{slots: 1}
	fields := strings.Fields(text)
	var slots string
	var given bool
	switch len(fields) {
	case 0:
		return n, errors.New("empty: want host[:slots]")
	case 1:
		n.host, slots, given = cutSlots(fields[0])
	case 2:
		n.host = fields[0]
		if slots, given = strings.CutPrefix(fields[1], "slots="); !given {
			return n, fmt.Errorf("%q after host %q: only slots=N may follow", fields[1], n.host)
		}
	default:
		return n, fmt.Errorf("%q: want host[:slots] or host slots=N", text)
	}
	if given {
		var err error
		if n.slots, err = strconv.Atoi(slots); err != nil || n.slots < 1 || n.slots > maxSlots {
			return n, fmt.Errorf("slots %q of host %q: want 1 to %d", slots, n.host, maxSlots)
		}
	}
	return n, checkHost(n.host)
}

// cutSlots splits host:slots at the last colon outside brackets.
func cutSlots(item string) (host, slots string, given bool) {
	colon := strings.LastIndexByte(item, ':')
	if colon <= strings.LastIndexByte(item, ']') {
		return item, "", false
	}
	return item[:colon], item[colon+1:], true
}

// checkHost accepts names taken for one word, and not for an option, by a remote shell.
func checkHost(host string) error {
	if host == "" || len(host) > maxHost {
		return fmt.Errorf("host name of %d bytes: want 1 to %d", len(host), maxHost)
	}
	if host[0] == '-' {
		return fmt.Errorf("host %q begins with a dash", host)
	}
	for _, c := range host {
		if !isHostRune(c) {
			return fmt.Errorf("host %q has %q: letters, digits and .-_@%% are allowed, IPv6 addresses go in [brackets]", host, c)
		}
	}
	open, shut := strings.Count(host, "["), strings.Count(host, "]")
	bracketed := open == 1 && shut == 1 && strings.HasSuffix(host, "]")
	if !bracketed && (open+shut > 0 || strings.Contains(host, ":")) {
		return fmt.Errorf("host %q: want name or [IPv6 address]", host)
	}
	return nil
}

func isHostRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune(".-_@%:[]", c)
}

// addNode appends n, or adds its slots to an earlier entry of the same host: there is one agent per host.
func addNode(nodes []node, n node) []node {
	for i := range nodes {
		if nodes[i].host == n.host {
			nodes[i].slots += n.slots
			return nodes
		}
	}
	return append(nodes, n)
}
