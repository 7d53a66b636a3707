package main

import (
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// disableWatchList makes informers begin with a list. The gate is read from the
// environment when the first client asks for it, so this comes before any client;
// its default since client-go 0.35 is a watch-list.
func disableWatchList() error {
	return os.Setenv("KUBE_FEATURE_WatchListClient", "false")
}

// newPagedInformer is the stock informer with a first list that comes in pages.
//
// Reflectors ask for pages of 500 but also for "any version" (resourceVersion=0),
// and the API server answers that from its watch cache in one piece, whatever the
// limit. Asking for the latest version instead gets the pages.
func newPagedInformer(
	lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	upstream := cache.ToListerWatcherWithContext(lw)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" {
				options.ResourceVersion = ""
			}
			return upstream.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: upstream.WatchWithContext,
	}, object, resync, indexers)
}
