/* Two threads hand each other the turn through a mutex and a condition variable. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static long rounds;

static void *play(void *me) {
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != (int)(long)me) pthread_cond_wait(&changed, &mutex);
        turn = !turn;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    rounds = argc > 1 ? atol(argv[1]) : 60000;
    pthread_create(&other, NULL, play, (void *)1);
    play((void *)0);
    pthread_join(other, NULL);
    return 0;
}
