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

// OriginNames calls yield with the name of every origin that s ever met, until yield
// returns false. It uses an OriginLister if s is one.
func OriginNames(ctx context.Context, s Inspector, yield func(decorum.Origin) bool) error {
	if l, ok := s.(OriginLister); ok {
		return l.OriginNames(ctx, yield)
	}
	return s.Origins(ctx, func(o OriginInfo) bool { return yield(o.Origin) })
}
