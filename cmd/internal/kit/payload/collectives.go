package payload

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Prepare prepares the request's collective on buffers of an element type known only at run time.
// They may be longer than the rank's needs.
func Prepare(ctx context.Context, c *planner.Comm, r tasks.Request, send, recv []byte) (*planner.Collective, error) {
	give, get := r.Buffers(levels.Rank(c.Rank()), c.Size())
	return raw.Prepare(ctx, c, r, send[:min(give, int64(len(send)))], recv[:min(get, int64(len(recv)))])
}

// CheckType returns an error if there are no buffers of a type: a Loc of a half type isn't
// a Go type.
func CheckType(t tasks.Datatype) error {
	value, isLoc := t.Loc()
	if !t.Valid() || isLoc && (value == tasks.Float16 || value == tasks.BFloat16) {
		return fmt.Errorf("there are no buffers of %v: no Go type is made of it", t)
	}
	return nil
}

// MaxBytes bounds all ranks' buffers together: a mistyped size must be an error, not the end of
// the process.
const MaxBytes = 64 << 30
