// Package labkit is what the laboratory's commands have in common: requests of recordings,
// times of simulated plans, statistics of ratios and ranks, and results as text, as JSON and
// as a drawing. It measures nothing.
package labkit
