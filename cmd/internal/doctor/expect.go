package doctor

import (
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// expected is the slowest good link of a level.
type expected struct {
	Rate    float64       `json:"bytes_per_second"` // 0: any
	Latency time.Duration `json:"latency_ns"`       // one way; 0: any
	given   bool          // by the user
}

// slowest is by the symbol of the level.
type slowest map[byte]expected

// readSlowest reads --expect, with defaults for all other levels.
func readSlowest(items []string) (slowest, error) {
	all := slowest{
		'm': {Rate: 2e9 / 8, Latency: 100 * time.Microsecond},
		's': {Rate: 2e9 / 8, Latency: 100 * time.Microsecond},
		'i': {Rate: 400e6 / 8, Latency: time.Millisecond},
		'w': {Rate: 10e6 / 8, Latency: 500 * time.Millisecond},
	}
	for _, item := range items {
		level, words, ok := strings.Cut(item, "=")
		if !ok || len(level) != 1 || all[level[0]] == (expected{}) {
			return nil, kit.Usagef("--expect %q: give LEVEL=RATE,LATENCY such as i=10gbit,50us; levels are m, s, i and w", item)
		}
		rate, latency, err := kit.ReadLink(words)
		if err != nil {
			return nil, kit.Usagef("--expect %q: %w", item, err)
		}
		all[level[0]] = expected{rate, latency, true}
	}
	return all, nil
}
