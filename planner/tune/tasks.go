package tune

// Tasks measures tasks by themselves and predicts all plans and sizes from them. Races tell
// plans of about equal predictions apart.
var Tasks = &Method{
	name: "tasks",
	about: `measures tasks by themselves, on some sizes of segments, and
at what pace they follow each other; predicts every plan and
size from that, and runs in turns what predictions don't tell
apart; measures nothing near what is twice as slow as the best`,
	begin: func(k *knowledge) strategy { return newPredictor(k, thrift{far: 2, racers: 6, close: 1.2}) },
}
