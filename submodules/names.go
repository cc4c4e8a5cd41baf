package submodules

// The submodules' names, as plans have them.
const (
	Adapt     = "adapt"
	Circulant = "circulant"
	NBC       = "nbc"
	SM        = "sm"
	Solo      = "solo"
)

// The algorithms' names, as plans have them. Several submodules may have one of a name.
const (
	Binary          = "binary"
	Binomial        = "binomial"
	Blocks          = "blocks"
	Bruck           = "bruck"
	Chain           = "chain"
	Direct          = "direct"
	Dissemination   = "dissemination"
	Halving         = "halving"
	InOrderBinary   = "inorderbinary"
	InOrderBinomial = "inorderbinomial"
	KChain          = "kchain"
	KNomial         = "knomial"
	Linear          = "linear"
	Neighbor        = "neighbor"
	NonOverlapping  = "nonoverlapping"
	Pairwise        = "pairwise"
	Rabenseifner    = "rabenseifner"
	RecDoubling     = "recdoubling"
	Ring            = "ring"
	Rings           = "rings"
	Slices          = "slices"
	Slots           = "slots"
	SplitBinary     = "splitbinary"
)
