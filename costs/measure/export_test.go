package measure

import (
	"context"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Following is what a sample of calls back to back is made of.
type Following struct {
	Roots []levels.Rank // of the calls, in turn
	Each  int           // calls
}

// Follow returns what a sample of a collective would be made of.
func (b *Bench) Follow(ctx context.Context, r tasks.Request, p tasks.Plan) (f Following, err error) {
	c, err := b.newCalls(r, p)
	if err == nil {
		err = c.follow(ctx)
	}
	if err != nil {
		return f, err
	}
	for _, x := range c.turns {
		f.Roots = append(f.Roots, x.root)
	}
	f.Each = c.each
	return f, nil
}
