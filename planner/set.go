package planner

import (
	"context"
	"errors"
	"fmt"
)

var errNoRules = errors.New("the communicator has no rules, see Options.Rules")

// Set changes a named value of the communicator's rules, such as small of $small = 32KiB. All
// ranks call it, in the order of the communicator's collectives, and rank 0's value, 0 or more,
// holds. Collectives that are created afterwards are decided by it, and one-shot calls. Those that
// were created before keep their plans until [Collective.Replan]. No other
// call on the communicator runs meanwhile. Communicators of Split and Dup begin with the values
// that this one has then, and change theirs for themselves.
func (c *Comm) Set(ctx context.Context, name string, to int64) error {
	if err := c.usable(ctx); err != nil {
		return fmt.Errorf("set $%s: %w", name, err)
	}
	if c.rules == nil {
		return fmt.Errorf("set $%s: %w", name, errNoRules)
	}
	if _, err := c.rules.Value(name); err != nil {
		return fmt.Errorf("set: %w", err) // on all ranks: they have the same rules
	}
	value := []int64{to}
	if err := BcastNow(ctx, c, value, 0); err != nil {
		return fmt.Errorf("set $%s: %w", name, err)
	}
	if err := c.rules.Set(name, value[0]); err != nil {
		return fmt.Errorf("set: %w", err)
	}
	c.forgetDecisions()
	return nil
}

// Value returns a named value of the communicator's rules, as it is now. Without rules, and for
// a name that they don't have, it is an error.
func (c *Comm) Value(name string) (int64, error) {
	c.mustBeMade()
	if c.rules == nil {
		return 0, fmt.Errorf("$%s: %w", name, errNoRules)
	}
	return c.rules.Value(name)
}

// forgetDecisions drops all decisions, and what was compiled for one-shot calls by them.
func (c *Comm) forgetDecisions() {
	c.memo.forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.cache {
		c.forget(r)
	}
}
