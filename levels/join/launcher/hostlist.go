package launcher

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a short text may expand to: names, and bytes of each.
const (
	maxHosts = 1 << 16
	maxName  = 255
)

var errHosts = errors.New("want names and ranges such as node[01-16,20]")

// parseHosts expands a list of hosts as Slurm writes it: a,b[01-03,7],c[1-2]x[0-1].
// Numbers keep their leading zeros. It returns at least 1 and at most 65,536 names.
func parseHosts(list string) ([]string, error) {
	complain := func(err error) error { return fmt.Errorf("%s: %w", quoteStart(list), err) }
	var hosts []string
	for _, item := range splitOutside(list) {
		names, err := expand(item, maxHosts-len(hosts))
		if err != nil {
			return nil, complain(err)
		}
		hosts = append(hosts, names...)
	}
	return hosts, nil
}

// quoteStart cuts a long text for an error.
func quoteStart(text string) string {
	if len(text) > 200 {
		return strconv.Quote(text[:200]) + "…"
	}
	return strconv.Quote(text)
}

// splitOutside splits at commas outside brackets.
func splitOutside(list string) []string {
	var items []string
	inside, begin := false, 0
	for i := range len(list) {
		switch list[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				items = append(items, list[begin:i])
				begin = i + 1
			}
		}
	}
	return append(items, list[begin:])
}

// expand returns the names of one item, at most limit.
func expand(item string, limit int) ([]string, error) {
	names := []string{""}
	for item != "" {
		literal, rest, ranged := strings.Cut(item, "[")
		if strings.ContainsFunc(literal, func(c rune) bool { return !isHostRune(c) }) {
			return nil, errHosts
		}
		ends := []string{""}
		if ranged {
			inside, after, closed := strings.Cut(rest, "]")
			if !closed {
				return nil, errHosts
			}
			var err error
			if ends, err = expandRanges(inside, limit); err != nil {
				return nil, err
			}
			rest = after
		}
		if len(names)*len(ends) > limit {
			return nil, errTooMany
		}
		names = cross(names, literal, ends)
		if len(names[len(names)-1]) > maxName {
			return nil, errHosts
		}
		item = rest
	}
	if names[0] == "" {
		return nil, errHosts
	}
	return names, nil
}

var errTooMany = fmt.Errorf("more than %d hosts", maxHosts)

// cross returns all names with literal and all ends behind them.
func cross(names []string, literal string, ends []string) []string {
	var all []string
	for _, name := range names {
		for _, end := range ends {
			all = append(all, name+literal+end)
		}
	}
	return all
}

func isHostRune(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.ContainsRune(".-_", c)
}

// expandRanges returns the numbers of 01-03,7 with their zeros, at most limit.
func expandRanges(text string, limit int) ([]string, error) {
	var all []string
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := number(low)
		to, err2 := number(high)
		switch {
		case err != nil || err2 != nil || to < from:
			return nil, errHosts
		case len(all)+to-from+1 > limit:
			return nil, errTooMany
		}
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	return all, nil
}

// number reads at most nine digits.
func number(text string) (int, error) {
	if len(text) == 0 || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, errHosts
	}
	return strconv.Atoi(text)
}

// ParseCounts expands numbers per host as Slurm writes them in
// SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE: 4(x2),3. It returns at least 1 and
// at most 65,536 numbers from 1 up.
func ParseCounts(text string) ([]int, error) {
	var counts []int
	for _, item := range strings.Split(text, ",") {
		value, times, repeated := strings.Cut(item, "(x")
		many := 1
		n, err := number(value)
		if repeated && err == nil {
			digits, closed := strings.CutSuffix(times, ")")
			if many, err = number(digits); !closed {
				err = errHosts
			}
		}
		if err != nil || n < 1 || many < 1 || len(counts)+many > maxHosts {
			return nil, fmt.Errorf("%s: want numbers such as 4(x2),3, of at most %d hosts", quoteStart(text), maxHosts)
		}
		for range many {
			counts = append(counts, n)
		}
	}
	return counts, nil
}
