package planner

import (
	"context"
	"errors"
	"fmt"
)

var errNoRules = errors.New("the communicator has no rules, see Options.Rules")

// Set changes a named value of the communicator's rules, such as small of $small = 32KiB. All
// ranks call it, in the order of the communicator's collectives, and rank 0's value, 0 or more,
// holds. It decides collectives created afterwards, and one-shot calls. Earlier
// collectives keep their plans until [Collective.Replan]. No other
// call on the communicator runs meanwhile. Communicators of Split and Dup begin with this one's
// values of then, and change theirs for themselves.
func (c *Comm) Set(ctx context.Context, name string, to int64) error {
	if err := c.checkCall(ctx); err != nil {
		return fmt.Errorf("set $%s: %w", name, err)
	}
	if c.rules == nil {
		return fmt.Errorf("set $%s: %w", name, errNoRules)
	}
	if _, err := c.rules.Value(name); err != nil {
		return fmt.Errorf("set: %w", err) // on all ranks: they have the same rules
	}
	value := []int64{to}
	if err := Bcast(ctx, c, value, 0); err != nil {
		return fmt.Errorf("set $%s: %w", name, err)
	}
	if err := c.rules.Set(name, value[0]); err != nil {
		return fmt.Errorf("set: %w", err)
	}
	c.memo.forget()
	c.store.forgetAll()
	return nil
}

// Value returns a named value of the communicator's rules, as it is now. Without rules, and for
// a name unknown to them, it is an error.
func (c *Comm) Value(name string) (int64, error) {
	c.mustBeMade()
	if c.rules == nil {
		return 0, fmt.Errorf("$%s: %w", name, errNoRules)
	}
	return c.rules.Value(name)
}
