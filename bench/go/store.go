package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached returns pointers to everything the cache holds of a kind, after it synced.
// The objects are the cache's own and must not be changed.
//
// Client.List would do, but fills a slice of whole objects: at 50,000 of them that
// is tens of megabytes of garbage for a checksum, and it would be Go's memory that
// the benchmark then reports. Pointers cost 16 bytes each.
func cached(ctx context.Context, mgr ctrl.Manager, kind client.Object) ([]any, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	shared, ok := informer.(cache.SharedInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %T has no store: it is a %T", kind, informer)
	}
	return shared.GetStore().List(), nil
}
