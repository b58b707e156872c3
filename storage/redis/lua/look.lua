-- look(clock) → sum: what there is.
return finish(wake())
