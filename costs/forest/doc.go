// Package forest learns a number from examples: a random forest of regression trees.
//
// It knows nothing of collectives, and has no state beside a [Forest]. Equal examples, options and
// seeds give equal forests.
//
//	f, err := forest.Train(x, y, forest.Options{Seed: 1})
//	ns := f.Predict([]float64{3, 1, 16})
//	unsure := f.Spread([]float64{3, 1, 16})
//
// The defaults are those of scikit-learn's RandomForestRegressor. ACCLAiM (Wilkins and others,
// 2022, section IV) learns the times of collectives with it.
package forest
