t<-0; for(r in 1:60){ x<-runif(5e6/8); y<-x*2+1; t<-t+sum(y)}; cat(t,"\n")
