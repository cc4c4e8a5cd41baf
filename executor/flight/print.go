package flight

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Print writes recordings for people: the last events of all of them together,
// oldest first, then one line for each rank's state. Times count back from the
// last sign of life of any of them, by the clocks of their hosts. last bounds the
// events of each recording; 0: all.
func Print(w io.Writer, recs []*Recording, last int) error {
	var b bytes.Buffer
	if err := PrintEvents(&b, recs, last); err != nil {
		return err
	}
	for _, r := range recs {
		r.state(&b, lastSeen(recs))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// lastSeen is the last sign of life of any rank.
func lastSeen(recs []*Recording) (end time.Time) {
	for _, r := range recs {
		if t := r.Start.Add(r.Seen); t.After(end) {
			end = t
		}
	}
	return end
}

// PrintEvents is [Print] without the ranks' states.
func PrintEvents(w io.Writer, recs []*Recording, last int) error {
	end := lastSeen(recs)
	var lines []line
	for _, r := range recs {
		events := r.Events
		if last > 0 && len(events) > last {
			events = events[len(events)-last:]
		}
		for i := range events {
			lines = append(lines, line{r, &events[i], r.Start.Add(time.Duration(events[i].Time)).Sub(end)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(table, "%s\trank %d\t%s\n", seconds(l.at), l.rec.Rank, l.text())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for l := range bytes.Lines(b.Bytes()) {
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(l, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// line is an event of a recording.
type line struct {
	rec *Recording
	e   *Event
	at  time.Duration // before the end
}

// text is the rest of an event's line, in cells.
func (l line) text() string {
	e := l.e
	of := fmt.Sprintf("%s #%d", l.rec.request(e.Comm, e.Seq), e.Seq)
	if e.Comm != 0 {
		of += " on comm " + CommName(e.Comm)
	}
	if e.Kind == Waiting && e.Message == tagged {
		from := fmt.Sprintf("rank %d", e.Peer)
		if e.Peer < 0 {
			from = "any rank"
		}
		return fmt.Sprintf("%v\tfor %s\ttag %d, %d bytes\t", e.Kind, from, e.Edge, e.Bytes)
	}
	switch e.Kind {
	case RunBegin, RunEnd, RunFail:
		return fmt.Sprintf("%v\t\t\t%s", e.Kind, of)
	case Waiting:
		return fmt.Sprintf("%v\tfor rank %d\tedge %d, %d bytes\t%s", e.Kind, e.Peer, e.Edge, e.Bytes, of)
	case Broken:
		return fmt.Sprintf("%v\tby rank %d\t\tcomm %s", e.Kind, e.Peer, CommName(e.Comm))
	case Sent, Received:
		to := "to"
		if e.Kind == Received {
			to = "from"
		}
		return fmt.Sprintf("%v\t%s rank %d\t%s\t%s", e.Kind, to, e.Peer, e.message(), e.owner(of))
	}
	return e.Kind.String()
}

// CommName is a communicator's number for people: r3.17 is the 17th drawn by rank 3 of the
// world; world is that of all ranks. A number drawn by no rank is printed as it is.
func CommName(comm uint64) string {
	const rankAt, rankBits = 42, 21
	leader := comm >> rankAt
	switch {
	case comm == 0:
		return "world"
	case leader == 0 || leader >= 1<<rankBits:
		return fmt.Sprint(comm)
	}
	return fmt.Sprintf("r%d.%d", leader-1, comm&(1<<rankAt-1))
}

// message is the text of a message.
func (e *Event) message() string {
	text := messageName(e.Message)
	switch text {
	case "return", "bye", "accept", "arrived":
		return text
	case "tagged", "offer":
		return fmt.Sprintf("%s tag %d, %d bytes", text, e.Edge, e.Bytes)
	}
	text += fmt.Sprintf(" edge %d, %d bytes", e.Edge, e.Bytes)
	if e.Pass > 0 {
		text += fmt.Sprintf(", pass %d", e.Pass)
	}
	return text
}

// owner is a message's call; point-to-point messages and those
// about the link belong to none.
func (e *Event) owner(of string) string {
	switch messageName(e.Message) {
	case "return", "tagged", "offer", "accept", "arrived", "bye":
		return ""
	}
	return of
}

// state says how a rank was when its recording ended.
func (r *Recording) state(w io.Writer, end time.Time) {
	ago := func(d time.Duration) string { return seconds(r.Start.Add(d).Sub(end)) }
	open := r.Unfinished()
	for _, c := range open {
		if c.Apart {
			fmt.Fprintf(w, "rank %d: %s: waits since %s\n", r.Rank, c.Request, ago(c.Begun))
			continue
		}
		fmt.Fprintf(w, "rank %d: %s #%d: ", r.Rank, c.Request, c.Seq)
		if c.Waits != "" {
			fmt.Fprintf(w, "waits since %s: %s\n", ago(c.Since), c.Waits)
		} else {
			fmt.Fprintf(w, "on its way since %s\n", ago(c.Begun))
		}
	}
	if r.Failure != "" {
		fmt.Fprintf(w, "rank %d: broke at %s: %s\n", r.Rank, ago(r.FailedAt), r.Failure)
	}
	switch {
	case r.Closed:
		fmt.Fprintf(w, "rank %d: closed at %s\n", r.Rank, ago(r.Seen))
	case len(open) == 0:
		fmt.Fprintf(w, "rank %d: in no call, last seen at %s\n", r.Rank, ago(r.Seen))
	default:
		fmt.Fprintf(w, "rank %d: last seen at %s (process %d)\n", r.Rank, ago(r.Seen), r.PID)
	}
}

// seconds has six decimals.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.6fs", d.Seconds()) }
