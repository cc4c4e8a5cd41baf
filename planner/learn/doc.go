// Package learn decides which plan to measure next. So few measurements tell plans apart: active
// learning as ACCLAiM has it (Wilkins and others, CLUSTER 2022).
//
// It measures nothing and has no clock: callers do, and tell it. Equal answers in equal order
// give equal questions. Answers change nothing: with or without requests for predictions the
// questions are the same.
//
//	l := learn.New(points, learn.Options{Seed: 1})
//	for next, ok := l.Next(); ok && !l.Converged(); next, ok = l.Next() {
//		l.Learn(next.At, measure(points[next.At]))
//	}
//	l.Train()
//	best := l.Best(choice)
package learn
