// Package costs holds measured times of tasks and predicts the times of whole
// collectives from them, as HAN's autotuner does (HAN, sections III-A to III-C).
// Costs of a task serve every message size, and every collective that has the task.
//
// It never measures, reads a clock or starts a goroutine; package measure fills its
// tables. All costs are measured, in nanoseconds.
//
//	book, err := costs.Load("costs.json", data)
//	prediction, err := costs.Predict(request, topology, plan, book)
//	fmt.Print(prediction.Explain())
//
// There are three models. Lockstep shapes are priced by stage tasks: fill, then the stable stage as
// often as segments need it, then drain ([Cost]). Dataflow shapes have no stages to time; they are
// priced by the completion times of segments ([Pipeline]). Every shape can be priced by tasks
// measured by themselves ([Makeup], [PredictByTasks]): fill, and for each further segment the
// slowest level. A pipeline serves one plan, and a task all plans and collectives with it. On a
// simulated 4x2 tasks were off by 2 to 5% on average. Pipelines were off by more, except for bcasts
// by scatter and allgather in small segments (TestTasksPredict).
package costs
