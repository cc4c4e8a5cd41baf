package kit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
)

// defaultLink joins the nodes of a topology unless --link says otherwise. Without any
// delay between nodes a hierarchy could gain nothing.
const defaultLink = "i=1gbit,50us"

const linkText = "emulated link between nodes: rate and delay as in " + defaultLink + ", or none (default " + defaultLink + " if there are nodes)"

// link is an emulated link between nodes; nil is none.
type link struct {
	text  string
	rate  float64 // bytes per second; 0: unlimited
	delay time.Duration
}

// parseLink reads i=1gbit,50us: rate, delay or both. An empty text is the default for
// t. A link in a machine of one node is an error.
func parseLink(text string, t *levels.Topology) (*link, error) {
	switch {
	case text == "none", text == "" && t.Nodes() == 1:
		return nil, nil
	case text == "":
		text = defaultLink
	case t.Nodes() == 1:
		return nil, fmt.Errorf("%q: there is no link in a machine of one node", text)
	}
	l := &link{text: text}
	values, ok := strings.CutPrefix(text, "i=")
	words := strings.Split(values, ",")
	if !ok || len(words) > 2 {
		return nil, fmt.Errorf("%q: write i=rate,delay such as %s, one of the two, or none", text, defaultLink)
	}
	for _, word := range words {
		if err := l.readWord(word); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
	}
	return l, nil
}

// readWord reads a rate or a delay.
func (l *link) readWord(word string) error {
	if rate, ok := parseRate(word); ok && l.rate == 0 {
		l.rate = rate
		return nil
	}
	if d, err := time.ParseDuration(word); err == nil && d >= 0 && d <= time.Minute && l.delay == 0 {
		l.delay = d
		return nil
	}
	return fmt.Errorf("%q: one rate (bit, kbit, mbit, gbit or tbit per second, above 0) and one delay (ns, us, ms or s, up to 1m) are allowed", word)
}

// ReadLink reads a rate, bytes per second, and a delay from words such as 10gbit,50us; each is 0
// if left out.
func ReadLink(words string) (rate float64, delay time.Duration, err error) {
	var l link
	for word := range strings.SplitSeq(words, ",") {
		if err := l.readWord(word); err != nil {
			return 0, 0, err
		}
	}
	return l.rate, l.delay, nil
}

// parseRate reads bits per second in decimal units, such as 1gbit, and returns bytes
// per second.
func parseRate(word string) (float64, bool) {
	number, ok := strings.CutSuffix(word, "bit")
	if !ok {
		return 0, false
	}
	unit := 1.0
	if i := strings.IndexByte("kmgt", lastByte(number)); i >= 0 {
		number, unit = number[:len(number)-1], math.Pow(1000, float64(i+1))
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n*unit >= 1) || math.IsInf(n, 0) {
		return 0, false
	}
	return n * unit / 8, true
}

// lastByte returns the last byte of s, or 0.
func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// shaper returns the emulation for one world, or nil without a link.
func (l *link) shaper(t *levels.Topology) local.Shaper {
	if l == nil {
		return nil
	}
	return local.NewNetwork(t, l.rate, l.delay)
}

// String describes the link, which the times of a run depend on.
func (l *link) String() string {
	if l == nil {
		return table.SharedMemory
	}
	return "emulated: " + l.text + " between nodes"
}
