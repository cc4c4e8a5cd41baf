package tune

// TasksPruned is [Tasks] with heuristics to leave plans out. It needs fewer measurements
// to believe.
var TasksPruned = &Method{
	name: "tasks+heuristics", heuristics: true,
	about: "both, and follows only what is near the best",
	begin: func(k *knowledge) strategy {
		return newPredictor(k, thrift{far: 1.25, racers: 2, close: 1.1})
	},
}
