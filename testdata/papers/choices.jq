# From the JSON of tierflow-lab validate: what the plan of the least predicted cost takes, over the time of the best one. Only
# HAN's own configurations count; a search's space has the built-in rule's plan, too, and "others" is how much faster that is.
def fastest: map(.measured_ns) | min;
def share($all; key): ($all | min_by(key).measured_ns / ($all | fastest)) * 1000 | round / 1000;
def error($all; key): ($all | map(key / .measured_ns - 1 | fabs) | add / length) * 1000 | round / 10;
.validations[]
| [.configurations[] | select(.plan | test("^shape=han-lockstep") and (test("circulant") | not))] as $all
| [$machine, .collective, .bytes, ($all | length), ($all | fastest / 1000 | round),
   share($all; .predicted_ns), share($all; .alone_ns), error($all; .predicted_ns), error($all; .alone_ns),
   (($all | fastest) / (.configurations | fastest) * 100 | round / 100)]
| join(",")
