package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
)

// hindrance is a rank's word on why it can't enter: its own failure, or what it has heard of another's.
type hindrance struct {
	Of     levels.Rank `json:"of"`
	Reason string      `json:"reason"`
}

// maxReason bounds a hindrance's text, bytes.
const maxReason = 2 << 10

// agreeOnEntry tells all ranks whether this one can enter, and returns the reason of the first one that can't:
// its own error on the rank itself, else a [PeerError]. It is a ballot in one allgather over the control tree,
// which a rank without a data plane takes part in, too.
func (e *entry) agreeOnEntry(ctx context.Context, err error) error {
	var mine []byte
	if err != nil {
		h := hindrance{e.job.Rank, err.Error()}
		if p, ok := errors.AsType[*PeerError](err); ok {
			h = hindrance{p.Rank, p.Err.Error()}
		}
		h.Reason = h.Reason[:min(len(h.Reason), maxReason)]
		if mine, _ = json.Marshal(h); len(mine) > join.MaxPayload { // controls become six bytes each
			mine, _ = json.Marshal(hindrance{Of: h.Of, Reason: "its reason is too long to be told"})
		}
	}
	said, failed := e.job.Exchange(ctx, mine)
	if failed != nil {
		if lost, ok := errors.AsType[*join.PeerError](failed); ok {
			failed = executor.LostRank(lost.Rank, lost.Err)
			e.world.Fail(lost.Rank, lost.Err) // those that have entered must not blame this rank for leaving
		}
		return cmp.Or(err, fmt.Errorf("agree on entering: %w", failed))
	}
	first, known := firstHindrance(said)
	if err != nil && (!known || first.Of == e.job.Rank) {
		return err
	}
	if !known {
		return nil
	}
	return fmt.Errorf("join: %w", executor.LostRank(first.Of, errors.New(first.Reason)))
}

// firstHindrance returns the word of the first rank that failed by itself, or else the first word about another.
func firstHindrance(said [][]byte) (first hindrance, known bool) {
	for r, text := range said {
		var h hindrance
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &h); err != nil || int(h.Of) >= len(said) || h.Of < 0 {
			h = hindrance{levels.Rank(r), fmt.Sprintf("it said %.80q", text)}
		}
		if own := h.Of == levels.Rank(r); own || !known {
			if first, known = h, true; own {
				return first, true
			}
		}
	}
	return first, known
}
