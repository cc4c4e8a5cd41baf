package tune

// TasksPruned is [Tasks] less what heuristics leave out. It believes what it has seen
// sooner.
var TasksPruned = &Method{
	name: "tasks+heuristics", heuristics: true, last: racedAtLeast,
	about: "both, and follows only what is near the best",
	begin: func(k *knowledge) strategy {
		return byTasks(k, thrift{far: 1.25, few: 2, racers: 2, near: 1, close: 1.1})
	},
}
