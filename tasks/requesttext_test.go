package tasks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// Requests of all collectives, types and operations are what their texts read as.
func TestParseRequest(t *testing.T) {
	for _, coll := range Requestable() {
		for _, of := range Datatypes() {
			for _, op := range Ops() {
				r := Request{Coll: coll}
				if coll.HasData() {
					r.Count, r.Type = 1<<40+7, of
				}
				if r.Reduces() {
					r.Op = op
				}
				if r.Rooted() {
					r.Root = 5
				}
				if got, err := ParseRequest(r.String()); err != nil || got.String() != r.String() || got.Coll != r.Coll || got.Count != r.Count || got.Type != r.Type || got.Op != r.Op || got.Root != r.Root {
					t.Fatalf("%v reads as %v, %v", r, got, err)
				}
			}
		}
	}
}

func TestParseRequestRefuses(t *testing.T) {
	for _, text := range []string{
		"", "gossip", "barrier 4", "allreduce", "allreduce 4", "allreduce 4 f32", "allreduce four f32 sum", "allreduce 4 f32 summ", "allreduce 4 f32 mine",
		"bcast 4 f32", "bcast 4 f32 root", "bcast 4 f32 route 1", "bcast 4 f32 root 99999999999", "bcast 4 f32 root 1 2", "bcast  4 f32 root 1", "allgather [1 2] f32",
	} {
		if r, err := ParseRequest(text); err == nil || r.Coll != (Request{}).Coll || !strings.HasPrefix(err.Error(), fmt.Sprintf("request %q: ", text)) {
			t.Errorf("%q reads as %v, %v", text, r, err)
		}
	}
	if _, err := ParseRequest("gossip 4 f32"); err == nil || !strings.Contains(err.Error(), `unknown collective "gossip"`) {
		t.Error(err)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("allreduce 1024 f32 sum")
	f.Add("bcast 4 f32 root 1")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequest(text)
		if err == nil && r.String() != text {
			t.Errorf("%q reads as %v", text, r)
		}
		_ = r.Validate(int(levels.Rank(4)))
	})
}
