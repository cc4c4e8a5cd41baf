package planner

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/tasks"
)

func init() {
	inside.Give(&inside.Calls[Comm, Collective, Options]{
		JoinAs: joinAs, Inspect: inspect, Usages: usages, Seams: func(o *Options) *inside.Seams { return &o.seams },
		Canonical: (*Comm).checkRequest, Prepare: (*Comm).prepareRequest, PrepareNamed: (*Comm).prepareNamed, Ready: (*Comm).ready,
		Run: (*Comm).runRequest, Rebind: (*Collective).rebindTo, Explain: (*Comm).explainRequest,
		Exchange: (*Comm).exchangeBlocks,
		StartExchange: func(c *Comm, ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (inside.Pending, error) {
			x, err := c.startExchange(ctx, coll, root, give, get)
			if err != nil {
				return nil, err
			}
			return x, nil
		},
		DrawID: (*Comm).drawID, Sub: (*Comm).sub,
		Under: (*Comm).under, Counters: (*Comm).counters, TableFile: (*Comm).ownTableFile, KeepTable: (*Comm).keepForLater,
		Internal: func(c *Comm, r tasks.Request, why string, buf []byte) (*executor.Run, error) {
			return c.internal(r, purpose(why), buf)
		},
		Variants:    (*Comm).newVariants,
		Logger:      (*Options).logger,
		TakesIn:     func(c *Comm) bool { return c.world.lobby() != nil },
		MayLeaveOut: (*Comm).mayLeaveOut, Unheard: (*Comm).unheard,
		CallTimeout: func(c *Comm) time.Duration { return c.world.CallTimeout() },
	})
}
