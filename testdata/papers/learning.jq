# From the JSON of tierflow-lab learn: shares of what all measurements of a set take. -: not with every seed.
def percent($of): . / $of * 10000 | round / 100;
def short: . * 1000 | round / 1000;
.[] | .set as $set | .ways[0].seconds as $every | .ways[1:][] | select(.name != "assumed prices")
| [($set | gsub(".*/|\\.json|,"; "")), .name, (if ."seconds_to_1.03" < 0 then "-" else ."seconds_to_1.03" | percent($every) end), (.seconds | percent($every)),
   (.slowdown | short), (.odd_slowdown | short), (.worst | short)]
| join(",")
