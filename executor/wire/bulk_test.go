package wire

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Payloads leave by urgency and, of equal ones, in the order in which they came; one that has begun
// stays first.
func TestQueueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Fifo[Outgoing]
		var twin []Outgoing
		for i := range int32(200) {
			if len(twin) > 0 && rapid.Bool().Draw(t, "leave") {
				first := q.First()
				if first.Token != twin[0].Token {
					t.Fatalf("first is %d, want %d", first.Token, twin[0].Token)
				}
				if first.Gone == 0 && rapid.Bool().Draw(t, "in parts") {
					first.Gone, twin[0].Gone = 1, 1
					continue
				}
				q.Pop()
				twin = twin[1:]
				continue
			}
			o := Outgoing{Message: Message{Urgency: rapid.Int32Range(-2, 2).Draw(t, "urgency")}, Token: i}
			Queue(&q, o)
			begun := 0
			if len(twin) > 0 {
				begun = min(twin[0].Gone, 1)
			}
			twin = append(twin, o)
			slices.SortStableFunc(twin[begun:], func(a, b Outgoing) int { return cmp.Compare(b.Message.Urgency, a.Message.Urgency) })
		}
		if len(twin) != q.Len() {
			t.Fatalf("%d payloads, want %d", q.Len(), len(twin))
		}
	})
}
