package tune

// ExhaustivePruned is [Exhaustive] with heuristics to leave plans out.
var ExhaustivePruned = &Method{
	name: "exhaustive+heuristics", heuristics: true,
	about: `leaves out what rarely wins: solo between processes below
segments of 512 KiB, chains with fewer pieces than ranks, cuts
through messages of at most 16 KiB, linear exchanges of over 16
ranks, messages inside a node`,
	begin: func(k *knowledge) strategy { return exhaustive{k} },
}
