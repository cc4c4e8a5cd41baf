package trials

import (
	"path/filepath"
	"testing"

	"github.com/tierflow/tierflow/submodules/all"
)

// The model predicts what was recorded on emulated clusters at least as well as it did when
// it was recorded. No time is measured here.
func TestRecordedAccuracy(t *testing.T) {
	files, err := filepath.Glob("../../../../testdata/accuracy/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, topo, err := readRecording(file)
			if err != nil {
				t.Fatal(err)
			}
			then := rec.Summary
			if err := rec.simulate(t.Context(), topo, all.Submodules()); err != nil {
				t.Fatal(err)
			}
			now := rec.Summary
			t.Logf("%s on %s\n%v", rec.Links, rec.Topology, now)
			if now.LargeMedian > then.LargeMedian+0.005 || now.Within < then.Within-0.01 || now.Rank < then.Rank-0.02 {
				t.Errorf("when it was recorded:\n%v", then)
			}
		})
	}
}
