package machine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/costs"
)

// ParseLogGOPS returns the machine of the parameters of LogGOPSim, written as there:
// L=2500,o=1500,g=1000,G=6,O=0,S=65535, times in ns and S in bytes. L, o, g and G must be
// there. All ranks are as far from each other, and each speaks by a wire of its own: so a
// node has one rank. Copies and reductions take no time, since LogGOPS has none.
//
//	L    latency_ns
//	o    send_ns, recv_ns
//	g    gap_ns
//	G    byte_ns
//	O    send_byte_ns, recv_byte_ns; 0 if not given
//	S    eager_max_bytes, and enough budget; as an executor has them if not given
//
// LogGOPSim counts G for one byte less, and knows neither budget nor leads.
func ParseLogGOPS(text string) (*Machine, error) {
	m := &Machine{Version: Version, Provenance: costs.Provenance{Method: "LogGOPS parameters " + text}}
	l := Link{Level: 'i'}
	limit := 0.0
	values := map[string]*float64{"L": &l.Latency, "o": &l.Send, "g": &l.Gap, "G": &l.Byte, "O": &l.SendByte, "S": &limit}
	given := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		key, number, _ := strings.Cut(word, "=")
		at := values[key]
		if at == nil {
			return nil, fmt.Errorf("LogGOPS parameter %q; known are L, o, g, G, O and S, as in L=2500,o=1500,g=1000,G=6", word)
		}
		if given[key] {
			return nil, fmt.Errorf("LogGOPS parameter %s is given twice", key)
		}
		given[key] = true
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0 && v <= most) {
			return nil, fmt.Errorf("LogGOPS parameter %q; allowed are 0 to %.0e", word, most)
		}
		*at = v
	}
	for _, key := range []string{"L", "o", "g", "G"} {
		if !given[key] {
			return nil, fmt.Errorf("LogGOPS parameter %s is missing in %q", key, text)
		}
	}
	l.Recv, l.RecvByte = l.Send, l.SendByte
	if given["S"] {
		if m.EagerMax = int64(limit); m.EagerMax == 0 {
			m.EagerMax = -1 // none
		}
		m.Budget = max(1<<20, 16*m.EagerMax)
	}
	m.Links = []Link{l}
	return m, nil
}
