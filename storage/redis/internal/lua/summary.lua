-- summary(clock) → sum: what there is.
return saveChanges(endHolds())
