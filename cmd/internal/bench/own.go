package bench

import (
	"context"
	"errors"

	"github.com/tierflow/tierflow/planner"
)

// openOwn returns a communicator for the bench's own barriers and sums beside each of comms,
// among the same ranks. No plan is forced there. A forced plan is for the measured operation, and
// a barrier may be unable to have it.
func openOwn(ctx context.Context, comms []*planner.Comm) ([]*planner.Comm, error) {
	var own []*planner.Comm
	for _, c := range comms {
		o, err := c.DupWith(ctx, "")
		if err != nil {
			return nil, errors.Join(err, closeOwn(own))
		}
		own = append(own, o)
	}
	return own, nil
}

// closeOwn closes all, and returns their complaints.
func closeOwn(own []*planner.Comm) error {
	var errs []error
	for _, c := range own {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
