package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
)

// loadTable returns the table to add to. Rank 0's file counts: all ranks must agree on the
// measurements to make.
func (u *Tuning) loadTable(ctx context.Context, r *Rank) (*table.Table, error) {
	made := &table.Table{Version: table.Version}
	if !u.resume {
		return made, nil
	}
	var data []byte
	var failed error
	if r.IsFirst() {
		var t *table.Table
		t, failed = choose.LoadTable(u.output, u.Registry)
		switch {
		case errors.Is(failed, fs.ErrNotExist):
			failed = nil
		case failed == nil:
			if failed = u.checkLinks(r, t); failed == nil {
				data, failed = t.Encode()
			}
		}
	}
	reason := ""
	if failed != nil {
		reason = failed.Error()
	}
	if r.Comm == nil {
		if failed != nil || data == nil {
			return made, failed
		}
		return table.Parse(u.output, data, u.Registry)
	}
	if why, err := tune.ShareBytes(ctx, r.Comm, []byte(reason), 0); err != nil || len(why) > 0 {
		return nil, cmp.Or(err, errors.New(string(why)))
	}
	data, err := tune.ShareBytes(ctx, r.Comm, data, 0)
	if err != nil || len(data) == 0 {
		return made, err
	}
	return table.Parse(u.output, data, u.Registry)
}

// checkLinks complains about a table with numbers of another kind than new ones: it was measured
// over other links or in another regime, or one of both is simulated.
func (u *Tuning) checkLinks(r *Rank, t *table.Table) error {
	if have := t.Provenance.Simulated; have != r.Simulated {
		said := map[bool]string{true: "measured", false: "simulated on "}
		return fmt.Errorf("--resume: %s was %s%s, now times are %s%s: a table has one kind", u.output, said[have == ""], have, said[r.Simulated == ""], r.Simulated)
	}
	if have := t.Regime(); have != u.Regime {
		return fmt.Errorf("--resume: %s has times of calls that were %v, these are %v: a table has one kind; give --regime %v", u.output, have, u.Regime, have)
	}
	if have, now := t.Provenance.Links, u.LinksOf(r); have != "" && have != now {
		return fmt.Errorf("--resume: %s was measured over links %q, these are %q", u.output, have, now)
	}
	return nil
}
