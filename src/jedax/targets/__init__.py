"""jedax."""
import jax, jax.numpy as jnp
def choose_uniform(key, num_cells, num): return jax.random.choice(key, num_cells, (num,), replace=False)
def choose_pareto(key, mean, variance, num):
    r=jnp.zeros(mean.shape,jnp.int32); dom=(mean[:,None]>=mean)&(variance[:,None]>=variance)&((mean[:,None]>mean)|(variance[:,None]>variance))
    alive=jnp.ones(mean.shape,bool)
    for k in range(8):
        front=alive&~((dom&alive[:,None]).any(0)); r=jnp.where(front,k,jnp.where(alive,k+1,r)); alive=alive&~front
    return jnp.lexsort((jax.random.uniform(key,mean.shape),r))[:num]
choose_ucb=choose_bucb=None
