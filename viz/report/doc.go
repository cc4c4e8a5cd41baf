// Package report makes one page of HTML of a job's trace: the causes of its time, the slow calls
// with their times, the late ranks, the traffic between nodes, and the slowest call with its
// critical path.
//
//	page, err := report.HTML(trace, findings, "tierflow v1.2.3")
//	os.WriteFile("report.html", page, 0o644)
//
// The page is one file and asks for nothing: a policy in its head forbids the browser to load
// anything. Pictures and tables need no script. A short one, whose hash the policy names,
// sorts tables and filters calls. Names in the trace are hostile input: they are escaped.
package report
