package storage

import (
	"context"

	"github.com/decorum-crawler/decorum"
)

// An OriginLister is an Inspector that lists the names of origins faster than Origins
// reads what it holds of them.
type OriginLister interface {
	// OriginNames calls yield with the origins that Origins tells of, in no order,
	// until yield returns false. yield must not call the Store.
	OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error
}
