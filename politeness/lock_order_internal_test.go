package politeness

import (
	"reflect"
	"testing"
)

// TestLockOrder checks that the types locked under SharedHosts.mu cannot reach a type that takes
// SharedHosts.mu: no field of theirs leads there, directly or through other fields.
func TestLockOrder(t *testing.T) {
	takesLock := map[reflect.Type]bool{reflect.TypeFor[SharedHosts](): true, reflect.TypeFor[Limiter](): true,
		reflect.TypeFor[Brakes](): true}
	for _, inner := range []reflect.Type{reflect.TypeFor[NetworkBreaker](), reflect.TypeFor[LocalOverloadLimiter]()} {
		seen := map[reflect.Type]bool{}
		var walk func(reflect.Type)
		walk = func(at reflect.Type) {
			if seen[at] {
				return
			}
			seen[at] = true
			switch at.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
				walk(at.Elem())
			case reflect.Map:
				walk(at.Key())
				walk(at.Elem())
			case reflect.Func, reflect.Interface:
				t.Errorf("%v has a %v, which could take any lock", inner, at)
			case reflect.Struct:
				if takesLock[at] {
					t.Errorf("%v leads to %v", inner, at)
				}
				for i := range at.NumField() {
					if at.PkgPath() == inner.PkgPath() || at == inner {
						walk(at.Field(i).Type)
					}
				}
			}
		}
		walk(inner)
		if len(seen) < 3 {
			t.Errorf("%v: only %d types were looked at", inner, len(seen))
		}
	}
}
