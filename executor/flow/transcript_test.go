package flow_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/executor/flow"
)

// The files are transcripts: a line that begins with > is a command, the lines after it
// are what happens.
//
//	> pair [far] [self] [eager=N] [budget=N]   two ranks, or one; what a program sets, 0 by default
//	> pass a N N …         the messages that a sends in this pass
//	> send a               the next of them
//	> send a N             a message of N bytes
//	> post a N             a point-to-point message of N bytes
//	> receive b #N         the recv of message N is ready
//	> hear b               all that is on its way to b
//	> fail                 the communicator breaks: what is kept, and what has not left, is dropped
//	> forge a N            a gives back N bytes that it was not sent
//	> state                where the budget is
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := play{t: t}
			for line := range strings.Lines(string(script)) {
				p.line(strings.TrimSuffix(line, "\n"))
			}
			if p.model != nil && p.model.problem != "" {
				t.Error(p.model.problem)
			}
			dagtest.Golden(t, filepath.ToSlash(file), p.text.String())
		})
	}
}

// play is a transcript that is being played.
type play struct {
	t     *testing.T
	model *model
	pass  map[*side][]int64 // what is left to send
	text  strings.Builder
}

// line plays a command, keeps comments and empty lines, and drops what happened before.
func (p *play) line(line string) {
	command, is := strings.CutPrefix(line, "> ")
	if is || line == "" || strings.HasPrefix(line, "#") {
		fmt.Fprintln(&p.text, line)
	}
	if !is {
		return
	}
	words := strings.Fields(command)
	if words[0] == "pair" {
		p.pair(words[1:])
		return
	}
	p.model.log.Reset()
	p.command(words[0], words[1:])
	if state := p.model.check(); words[0] == "state" {
		p.model.say("%s", state)
	}
	for line := range strings.Lines(p.model.log.String()) {
		fmt.Fprint(&p.text, "  ", line)
	}
}

func (p *play) pair(words []string) {
	set := map[string]int64{}
	for _, w := range words {
		if name, value, is := strings.Cut(w, "="); is {
			set[name] = p.number(value)
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(set)), slices.DeleteFunc([]string{"budget", "eager"}, func(s string) bool { _, is := set[s]; return !is })) {
		p.t.Fatalf("pair %v", words)
	}
	limits := flow.NewLimits(set["eager"], set["budget"])
	p.model = newModel(limits, slices.Contains(words, "far"), slices.Contains(words, "self"))
	p.pass = map[*side][]int64{}
	fmt.Fprintf(&p.text, "  without credit up to %d B, leads of %d B, budget %d B\n", limits.EagerMax, limits.Lead, p.model.limit)
}

func (p *play) command(what string, words []string) {
	m := p.model
	var s *side
	if len(words) > 0 {
		s = map[string]*side{"a": m.a, "b": m.b}[words[0]]
	}
	switch {
	case what == "state":
	case what == "fail":
		m.abandon()
	case what == "pass":
		for _, w := range words[1:] {
			p.pass[s] = append(p.pass[s], p.number(w))
		}
		if m.far {
			s.lead.Out = m.limits.CountLead(slices.Values(p.pass[s]))
		}
		m.say("%d of %d lead", s.lead.Out, len(p.pass[s]))
	case what == "send" && len(words) == 1:
		m.send(s, p.pass[s][0], false)
		p.pass[s] = p.pass[s][1:]
	case what == "send", what == "post":
		m.send(s, p.number(words[1]), what == "post")
	case what == "receive":
		number := p.number(words[1][1:])
		for _, one := range m.other(s).sends {
			if one.number == int(number) {
				m.receive(s, one)
			}
		}
	case what == "hear":
		for len(m.other(s).out) > 0 {
			m.hear(s)
		}
	case what == "forge":
		m.forged = true
		s.out = append(s.out, letter{giving, nil, int32(p.number(words[1]))})
	default:
		p.t.Fatalf("unknown command %s %v", what, words)
	}
}

func (p *play) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}
