package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page and its script
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

//go:embed page.html
var pageText string

//go:embed page.js
var script string

var page = template.Must(template.New("page").Parse(pageText))

// view is the content of the page.
type view struct {
	Policy   string // what the browser may load
	Script   template.JS
	Title    string
	Facts    []string
	Found    []string // findings; none: nothing was found, or nobody has looked
	Accounts []accountRow
	Causes   []legendRow
	Calls    []callRow
	Plot     template.HTML
	Late     template.HTML // by rank and time
	Ranks    []rankRow
	Links    linkTable
	Slowest  slowCall
}

// accountRow is the time of all calls with one request, by causes.
type accountRow struct {
	Request, Text string
	Calls         int
	MS            float64
	Bar           template.HTML
}

// legendRow is a cause and its color.
type legendRow struct {
	Cause viz.Cause
	Mark  template.HTML
}

// callRow is the calls with one request and plan.
type callRow struct {
	Request, Plan   string
	Reasons         []string // for the plan
	Bytes           int64
	Count           int
	Half, Most, Max float64 // microseconds that half of them took, 95 %, all
	BusMBs          float64 // by the half
}

// rankRow is how a rank does.
type rankRow struct {
	Rank     int
	Node     string
	Last     int     // calls to which it came last
	Behind   float64 // microseconds after the first, on average
	Critical float64 // milliseconds of critical paths on it
}

// HTML returns the page. by is the program that makes it, with its version. The same arguments give the same bytes.
func HTML(j *viz.JobTrace, found []verdict.Finding, by string) ([]byte, error) {
	hash := sha256.Sum256([]byte(script))
	v := view{
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
		Script: template.JS(script),
		Title:  pageTitle(j),
		Facts:  append(strings.Split(strings.TrimSpace(j.Summary()), "\n"), "page of "+by),
		Calls:  callRows(j),
		Late:   lateMap(j),
		Ranks:  rankRows(j),
		Links:  linksOf(j),
	}
	for i := range found {
		v.Found = append(v.Found, found[i].String())
	}
	for _, cause := range viz.Causes() {
		v.Causes = append(v.Causes, legendRow{cause, colorMark(causeColors[cause])})
	}
	for _, a := range viz.Accounts(j) {
		_, text, _ := strings.Cut(a.String(), ": ")
		v.Accounts = append(v.Accounts, accountRow{a.Request, text, a.Calls, float64(a.NS) / 1e6, shareBar(&a)})
	}
	v.Plot = plotTimes(v.Calls)
	if len(j.Calls) > 0 {
		v.Slowest = describeSlowest(j)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return b.Bytes(), nil
}

// pageTitle names the job: job 4f2c91aa: solver, 2026-11-24T10:00:00Z.
func pageTitle(j *viz.JobTrace) string {
	title, about := "job "+j.Job, []string{j.Program, j.Date}
	if about = slices.DeleteFunc(about, func(s string) bool { return s == "" }); len(about) > 0 {
		title += ": " + strings.Join(about, ", ")
	}
	return title
}

// callRows sums up calls by request and plan, the longest times first.
func callRows(j *viz.JobTrace) []callRow {
	type key struct{ request, plan string }
	times, rows := map[key][]float64{}, map[key]callRow{}
	for i := range j.Calls {
		c := &j.Calls[i]
		k := key{c.Request, c.Plan}
		times[k] = append(times[k], float64(c.Length())/1e3)
		r := rows[k]
		r.Request, r.Plan, r.Reasons, r.Bytes = c.Request, c.Plan, c.Reasons, max(r.Bytes, c.Bytes)
		r.BusMBs = busFactor(c.Request, len(c.Members)) * float64(r.Bytes)
		rows[k] = r
	}
	var all []callRow
	for k, r := range rows {
		t := slices.Sorted(slices.Values(times[k]))
		r.Count, r.Max = len(t), t[len(t)-1]
		r.Half, r.Most = t[len(t)/2], t[min(len(t)-1, len(t)*95/100)]
		r.BusMBs /= max(r.Half, 1e-3)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b callRow) int {
		return cmp.Or(cmp.Compare(b.Half*float64(b.Count), a.Half*float64(a.Count)), cmp.Compare(a.Request, b.Request), cmp.Compare(a.Plan, b.Plan))
	})
	return all
}

// collectiveOf is the first word of a request.
func collectiveOf(request string) string {
	word, _, _ := strings.Cut(request, " ")
	return word
}

// busFactor is how often the busiest link carries the message; 0 if the collective is unknown.
func busFactor(request string, ranks int) float64 {
	coll, err := tasks.ParseCollective(collectiveOf(request))
	if err != nil {
		return 0
	}
	return coll.BusFactor(ranks)
}

// rankRows says how late ranks are, and how much of the critical paths they are.
func rankRows(j *viz.JobTrace) []rankRow {
	all := make([]rankRow, len(j.Nodes))
	calls := make([]int, len(j.Nodes))
	for r := range all {
		all[r].Rank, all[r].Node = r, j.Nodes[r]
	}
	for i := range j.Calls {
		c := &j.Calls[i]
		all[c.Members[slices.Index(c.Begins, slices.Max(c.Begins))]].Last++
		for n, r := range c.Members {
			calls[r]++
			all[r].Behind += float64(c.Begins[n]-c.Begin()) / 1e3
		}
		for _, p := range viz.TracePath(c.Events) {
			all[c.Members[p.Rank]].Critical += float64(p.End-p.Begin) / 1e6
		}
	}
	for r := range all {
		all[r].Behind /= float64(max(1, calls[r]))
	}
	return all
}

// slowCall is the longest call.
type slowCall struct {
	Title string
	Draw  template.HTML
	Path  []pathRow // the longest pieces of its critical path
}

// pathRow is a piece of a critical path.
type pathRow struct {
	Rank        int
	Step, Cause string
	Begin, US   float64 // microseconds
}

// mostPieces bounds the listed pieces of a path.
const mostPieces = 20

// describeSlowest shows the longest call.
func describeSlowest(j *viz.JobTrace) (s slowCall) {
	c := j.Slowest()
	s.Title = fmt.Sprintf("%s, call %d, %v at %v, %s", c.Request, c.Seq, c.Length(), time.Duration(c.Begin()), c.Plan)
	path := viz.TracePath(c.Events)
	s.Draw = timeline(j, c, path)
	for _, p := range path {
		s.Path = append(s.Path, pathRow{int(c.Members[p.Rank]), p.Label, p.Cause, float64(p.Begin-c.Begin()) / 1e3, float64(p.End-p.Begin) / 1e3})
	}
	slices.SortStableFunc(s.Path, func(a, b pathRow) int { return cmp.Compare(b.US, a.US) })
	s.Path = s.Path[:min(len(s.Path), mostPieces)]
	return s
}
