-- summary(clock) → summary of the partition, after suspended origins whose hold is over were released.
return saveChanges(endHolds())
